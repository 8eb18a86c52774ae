// Package docker runs commands in containers of a Docker daemon on the worker's own host. Without a Runtime of its own the
// kernel is shared, as it is with package process: what a container adds is an image of its own instead of the host's
// programs, and a daemon that operators know how to watch.
//
// It is package process with another launcher: folders, supervisors, journals, sessions and the agent, which is process 1 of
// the container too, are the same. A sandbox has one long-lived container. The supervisor starts it by the program in
// launch, and talks to the agent in it by a socket in a folder that the container sees until the agent has come. When the
// supervisor or the agent ends, the container does, and the daemon removes it.
//
// A command that only reads gets a throw-away container with the workspace read-only, as it gets a bubblewrap of its own from
// package process. One long-lived container for them all would be cheaper, by what it takes to start one, but the agent could
// then not tell apart what each of several commands at a time has left behind.
//
// What a command gets: the image, read-only; /tmp, /home/agent and /dev/shm in memory, each of Profile.TmpMiB; /workspace. It
// has no network, no capabilities, may gain no privileges, and is filtered by the daemon's seccomp profile. It runs as the
// worker's user or, where that is root, as Config.UID. Memory, processes and CPU are limited by the container; the agent
// counts against them, so the limit of processes is higher than the profile's by what the agent may need.
//
// gVisor (Config.Runtime "runsc") passes the conformance suite with its arguments --host-uds=open --network=none. Differences:
// a command can end the sandbox that it is in, a sandbox that is out of memory is lost as a whole, and Result.OOM is never
// set. A runtime that puts a virtual machine between agent and socket is refused by Probe.
//
// The image needs bash and coreutils; nothing here pulls it.
package docker
