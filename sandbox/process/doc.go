// Package process runs commands in sandboxes made of Linux namespaces, by bubblewrap, on the worker's own host. The kernel
// is shared: it keeps honest mistakes and ordinary malice in, but is no match for a kernel exploit.
//
// Each sandbox has a supervisor, a small process that outlives the worker, holds the sandbox's journal and answers any
// worker on the host; see guest/doc.go for the processes and package wire for what passes between them. The worker's side
// is this package: it makes folders, starts supervisors, asks them, and cleans up.
//
// What a command gets: /usr, /bin, /lib* and /opt read-only; a minimal /etc, /dev and /proc; /tmp, /home/agent and /dev/shm
// in memory, each of Profile.TmpMiB; /workspace. It has no network, no capabilities, no environment but PATH, HOME, LANG,
// TERM and what profile and command say, and a seccomp filter. It runs as the worker's user or, where that is root, as
// Config.UID, and sees itself as user 1000.
//
// Supervisors and what they run must outlive a worker that is restarted: a systemd unit for the worker needs
// KillMode=process, and, for limits without root, Delegate=yes with DelegateSubgroup=worker. A container needs
// --security-opt seccomp=unconfined and systempaths=unconfined, or a profile that allows user namespaces and mounts.
package process
