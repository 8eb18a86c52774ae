//go:build linux

package seccomp_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"belay/sandbox/process/seccomp"
)

const (
	high    = 0xdeadbeef << 32     // rubbish in the upper word of an argument
	signed  = 0xffffffff << 32     // a sign extension there
	i386    = 0x40000003           // AUDIT_ARCH_I386
	x32     = 0x40000000           // bit of x32 system calls
	tiocsti = uint64(unix.TIOCSTI) // push a character into the terminal
	newuser = uint64(unix.CLONE_NEWUSER)
)

func native() uint32 {
	if runtime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

// judge runs the filter in an interpreter. The interpreter reads words as big endian; seccomp_data holds the low word of an
// argument first.
func judge(t *testing.T, vm *bpf.VM, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[0:], nr)
	binary.BigEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[20+8*i:], uint32(a>>32))
	}
	action, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(action)
}

func filter(t *testing.T) *bpf.VM {
	t.Helper()
	code, err := seccomp.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var program []bpf.Instruction
	for _, i := range code {
		program = append(program, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatalf("the filter is no valid program: %v", err)
	}
	return vm
}

func TestFilter(t *testing.T) {
	t.Parallel()
	vm := filter(t)
	eperm, enosys, noFamily := seccomp.Refuse(unix.EPERM), seccomp.Refuse(unix.ENOSYS), seccomp.Refuse(unix.EAFNOSUPPORT)
	for _, c := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"read", unix.SYS_READ, nil, seccomp.Allow},
		{"execve", unix.SYS_EXECVE, nil, seccomp.Allow},
		{"openat", unix.SYS_OPENAT, nil, seccomp.Allow},
		{"futex", unix.SYS_FUTEX, nil, seccomp.Allow},
		{"close_range", unix.SYS_CLOSE_RANGE, nil, seccomp.Allow},
		{"faccessat2", unix.SYS_FACCESSAT2, nil, seccomp.Allow},

		{"mount", unix.SYS_MOUNT, nil, eperm},
		{"umount2", unix.SYS_UMOUNT2, nil, eperm},
		{"open_tree", unix.SYS_OPEN_TREE, nil, eperm},
		{"move_mount", unix.SYS_MOVE_MOUNT, nil, eperm},
		{"fsopen", unix.SYS_FSOPEN, nil, eperm},
		{"pivot_root", unix.SYS_PIVOT_ROOT, nil, eperm},
		{"unshare", unix.SYS_UNSHARE, []uint64{newuser}, eperm},
		{"setns", unix.SYS_SETNS, nil, eperm},
		{"ptrace", unix.SYS_PTRACE, nil, eperm},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, nil, eperm},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, nil, eperm},
		{"bpf", unix.SYS_BPF, nil, eperm},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, nil, eperm},
		{"userfaultfd", unix.SYS_USERFAULTFD, nil, eperm},
		{"keyctl", unix.SYS_KEYCTL, nil, eperm},
		{"add_key", unix.SYS_ADD_KEY, nil, eperm},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, nil, eperm},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, nil, eperm},
		{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, nil, eperm},
		{"init_module", unix.SYS_INIT_MODULE, nil, eperm},
		{"kexec_load", unix.SYS_KEXEC_LOAD, nil, eperm},
		{"reboot", unix.SYS_REBOOT, nil, eperm},
		{"settimeofday", unix.SYS_SETTIMEOFDAY, nil, eperm},
		{"chroot", unix.SYS_CHROOT, nil, eperm},
		{"newer than the table", 5000, nil, enosys},

		{"clone of a thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, seccomp.Allow},
		{"clone of a process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, seccomp.Allow},
		{"clone with rubbish", unix.SYS_CLONE, []uint64{high | uint64(unix.SIGCHLD)}, seccomp.Allow},
		{"clone newuser", unix.SYS_CLONE, []uint64{newuser | uint64(unix.SIGCHLD)}, eperm},
		{"clone newuser with rubbish", unix.SYS_CLONE, []uint64{high | newuser}, eperm},
		{"clone newns", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNS}, eperm},
		{"clone newnet", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNET}, eperm},
		{"clone newcgroup", unix.SYS_CLONE, []uint64{unix.CLONE_NEWCGROUP}, eperm},
		{"clone3", unix.SYS_CLONE3, nil, enosys},

		{"ioctl tcgets", unix.SYS_IOCTL, []uint64{0, unix.TCGETS}, seccomp.Allow},
		{"ioctl tiocsti", unix.SYS_IOCTL, []uint64{0, tiocsti}, eperm},
		{"ioctl tiocsti with rubbish", unix.SYS_IOCTL, []uint64{0, high | tiocsti}, eperm},
		{"ioctl tiocsti sign extended", unix.SYS_IOCTL, []uint64{0, signed | tiocsti}, eperm},
		{"ioctl tioclinux", unix.SYS_IOCTL, []uint64{0, 0x541c}, eperm},

		{"socket unix", unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, seccomp.Allow},
		{"socket inet", unix.SYS_SOCKET, []uint64{unix.AF_INET}, seccomp.Allow},
		{"socket inet6", unix.SYS_SOCKET, []uint64{unix.AF_INET6}, seccomp.Allow},
		{"socket netlink route", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, seccomp.Allow},
		{"socket netlink netfilter", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, noFamily},
		{"socket packet", unix.SYS_SOCKET, []uint64{unix.AF_PACKET}, noFamily},
		{"socket vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK}, noFamily},
		{"socket vsock with rubbish", unix.SYS_SOCKET, []uint64{high | unix.AF_VSOCK}, noFamily},
		{"socket alg", unix.SYS_SOCKET, []uint64{unix.AF_ALG}, noFamily},

		{"personality linux", unix.SYS_PERSONALITY, []uint64{0}, seccomp.Allow},
		{"personality query", unix.SYS_PERSONALITY, []uint64{0xffffffff}, seccomp.Allow},
		{"personality no randomization", unix.SYS_PERSONALITY, []uint64{0x40000}, eperm},
	} {
		if got := judge(t, vm, native(), c.nr, c.args...); got != c.want {
			t.Errorf("%s: %#x; want %#x", c.name, got, c.want)
		}
	}
}

func TestFilterArchitecture(t *testing.T) {
	t.Parallel()
	vm := filter(t)
	for nr := range uint32(600) {
		if got := judge(t, vm, i386, nr); got != seccomp.KillProcess {
			t.Fatalf("i386 call %d: %#x; want the process killed", nr, got)
		}
	}
	if runtime.GOARCH != "amd64" {
		return
	}
	for nr := range uint32(600) {
		if got := judge(t, vm, native(), x32|nr); got != seccomp.Refuse(unix.ENOSYS) {
			t.Fatalf("x32 call %d: %#x; want ENOSYS", nr, got)
		}
	}
}

// An argument must never be taken for a system call number: a refused call stays refused whatever its arguments are.
func TestFilterArgumentsAreNotNumbers(t *testing.T) {
	t.Parallel()
	vm := filter(t)
	for value := range uint64(600) {
		for _, nr := range []uint32{unix.SYS_PTRACE, unix.SYS_MOUNT, unix.SYS_BPF} {
			if got := judge(t, vm, native(), nr, value, value, value); got != seccomp.Refuse(unix.EPERM) {
				t.Fatalf("call %d with %d: %#x", nr, value, got)
			}
		}
		allowed := value == unix.AF_UNIX || value == unix.AF_INET || value == unix.AF_INET6
		if got := judge(t, vm, native(), unix.SYS_SOCKET, value, unix.SOCK_RAW, 1); (got == seccomp.Allow) != allowed {
			t.Fatalf("socket family %d: %#x", value, got)
		}
	}
}
