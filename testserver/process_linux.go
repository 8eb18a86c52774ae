package testserver

import "syscall"

// endsWithUs has the kernel kill the process when the test program dies.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
