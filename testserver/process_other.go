//go:build !linux

package testserver

import "syscall"

func endsWithUs() *syscall.SysProcAttr { return nil }
