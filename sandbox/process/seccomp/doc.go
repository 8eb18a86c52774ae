// Package seccomp compiles the system call filter that every process in a sandbox runs under: the allow list of moby's
// container profile, less what looks into other processes or has a history of holes, with rules of our own for the calls
// that depend on an argument.
package seccomp
