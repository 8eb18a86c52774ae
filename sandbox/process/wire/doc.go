// Package wire is what a worker and the supervisors that it leaves behind agree on: the folder of a sandbox, the messages
// on the supervisor's socket, and how to know and end processes that may have outlived whoever started them.
package wire
