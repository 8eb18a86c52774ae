// Belay-sandbox is the part of sandbox/process that does not live in the worker. The worker carries this static program
// within itself and starts it as the supervisor of each sandbox; the other roles start one another:
//
//	supervisor  one per sandbox, outlives the worker; keeps the journal and decides what runs   (supervisor.go, run.go)
//	launch      as root only: becomes an unprivileged user, then bubblewrap                       (launch.go)
//	agent       process 1 in the sandbox; starts commands and reaps what they leave               (agent.go)
//	command     becomes one command, after it has joined the control group and set its limits    (command.go)
//
// bubblewrap stands between launch and agent: it makes the namespaces and mounts and installs the seccomp filter, so
// that agent, command and everything after them are confined from their first instruction.
package main
