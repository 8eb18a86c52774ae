// Package cgroup limits what the commands of a sandbox take from the host, with control groups of version 1 or 2, whichever
// the host lets us have.
package cgroup
