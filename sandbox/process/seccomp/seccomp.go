//go:build linux

package seccomp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	moby "github.com/moby/profiles/seccomp"
	"golang.org/x/sys/unix"
)

// Actions of a filter, as in linux/seccomp.h.
const (
	Allow       = 0x7fff0000
	KillProcess = 0x80000000
	errno       = 0x00050000
)

// Offsets in struct seccomp_data. Arguments are 64 bits, little endian on both architectures: the low word comes first.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

// Refuse is the action that lets a system call fail with an error number.
func Refuse(e unix.Errno) uint32 { return errno | uint32(e) }

// denied is what the profile of moby allows and we don't: it looks into other processes, enlarges the attack surface of
// the kernel, or has rules of its own below.
var denied = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
	"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "name_to_handle_at", "modify_ldt",
	"clone", "clone3", "ioctl", "personality", "socket",
}

// namespaces are the flags of clone that make a namespace.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

const tioclinux = 0x541c

// Compile makes the filter for the architecture that this program was built for.
func Compile() ([]unix.SockFilter, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("seccomp: %s: %w", runtime.GOARCH, err)
	}
	numbers := info.SyscallNames
	for _, name := range []string{"clone", "clone3", "ioctl", "personality", "socket"} {
		if _, ok := numbers[name]; !ok {
			return nil, fmt.Errorf("seccomp: %s: no number for system call %s", runtime.GOARCH, name)
		}
	}
	var p program
	p.load(offArch)
	p.unless(uint32(info.ID), KillProcess)
	p.load(offNr)
	if runtime.GOARCH == "amd64" {
		p.atLeast(0x40000000, Refuse(unix.ENOSYS)) // x32
	}
	p.when(numbers["clone3"], ret(Refuse(unix.ENOSYS))) // its flags are out of a filter's reach; libraries fall back on clone
	p.when(numbers["clone"], refuseBits(0, namespaces))
	p.when(numbers["ioctl"], refuseValues(1, unix.TIOCSTI, tioclinux, unix.TIOCSETD, unix.TIOCCONS))
	p.when(numbers["personality"], allowValues(0, Refuse(unix.EPERM), 0, 8, 0x20000, 0x20008, 0xffffffff))
	p.when(numbers["socket"], sockets())
	p.allow(allowed(numbers))
	// Libraries probe for calls newer than our table and fall back on ENOSYS, where EPERM would make them fail.
	p.atLeast(uint32(slices.Max(slices.Collect(maps.Values(numbers))))+1, Refuse(unix.ENOSYS))
	p.ret(Refuse(unix.EPERM))
	return p.code, nil
}

// Bytes is a filter in the form that the kernel and bubblewrap read.
func Bytes(code []unix.SockFilter) []byte {
	b := make([]byte, 0, 8*len(code))
	for _, i := range code {
		b = binary.NativeEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}

// allowed gives the numbers of the system calls that moby's profile allows whatever their arguments, to a process without
// capabilities, on this architecture.
func allowed(numbers map[string]int) []int {
	var ns []int
	for _, rule := range moby.DefaultProfile().Syscalls {
		if rule.Action != "SCMP_ACT_ALLOW" || len(rule.Args) > 0 {
			continue
		}
		if in := rule.Includes; in != nil && (len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.Contains(in.Arches, runtime.GOARCH)) {
			continue
		}
		for _, name := range rule.Names {
			if n, ok := numbers[name]; ok && !slices.Contains(denied, name) {
				ns = append(ns, n)
			}
		}
	}
	slices.Sort(ns)
	return slices.Compact(ns)
}

// sockets allows local and IP sockets, which lead nowhere in a network namespace without interfaces, and the routing
// socket that getifaddrs needs.
func sockets() []unix.SockFilter {
	var b program
	b.load(offArgs)
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		b.when(int(family), ret(Allow))
	}
	b.when(unix.AF_NETLINK, allowValues(2, Refuse(unix.EAFNOSUPPORT), unix.NETLINK_ROUTE))
	b.ret(Refuse(unix.EAFNOSUPPORT))
	return b.code
}
