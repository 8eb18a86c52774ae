//go:build linux

package process_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"belay/sandbox"
	"belay/sandbox/sandboxtest"
)

// attempt is something that must fail in a sandbox. targets are what the test put on the host.
type attempt struct {
	name string
	try  func(targets []string) error
}

func call6(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := syscall.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func text(s string) uintptr {
	p, err := unix.BytePtrFromString(s)
	if err != nil {
		return 0
	}
	return uintptr(unsafe.Pointer(p))
}

func open(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return c.Close()
}

func socket(domain, kind, protocol int) error {
	fd, err := unix.Socket(domain, kind, protocol)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// clone makes a process with the given flags, which ends at once.
func clone(flags uintptr) error {
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flags}})
	if err != nil {
		return err
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// controlling makes a terminal this process's own, as TIOCSTI wants it.
var controlling = sync.OnceValues(func() (int, error) {
	signal.Ignore(unix.SIGHUP)
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return 0, err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return 0, err
	}
	terminal, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return 0, err
	}
	_, _ = unix.Setsid() // EPERM: we lead a session already
	return terminal, unix.IoctlSetInt(terminal, unix.TIOCSCTTY, 0)
})

// terminal tries an ioctl on a terminal.
func terminal(request uintptr) func([]string) error {
	return func([]string) error {
		fd, err := controlling()
		if err != nil {
			return fmt.Errorf("cannot try: %w", err)
		}
		b := [1]byte{'x'}
		err = call6(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&b)))
		if err != unix.EPERM { // newer kernels refuse it too, with another error; that is not what holds here
			return nil
		}
		return err
	}
}

func reads(paths ...string) func([]string) error {
	return func([]string) error {
		for _, p := range paths {
			if err := open(p, os.O_RDONLY); err == nil {
				return nil
			}
		}
		return os.ErrPermission
	}
}

func writes(path string) func([]string) error {
	return func([]string) error { return open(path, os.O_WRONLY|os.O_CREATE) }
}

func system(nr uintptr, args ...uintptr) func([]string) error {
	return func([]string) error { return call6(nr, args...) }
}

var attempts = []attempt{
	{"read the host's files", func(t []string) error { return open(t[0], os.O_RDONLY) }},
	{"reach the host's abstract socket", func(t []string) error { return dial("unix", "@"+t[1]) }},
	{"reach the host by TCP", func(t []string) error { return dial("tcp", t[2]) }},
	{"reach the metadata service", func([]string) error { return dial("tcp", "169.254.169.254:80") }},
	{"send a datagram", func([]string) error { return dial("udp", "192.0.2.1:53") }},
	{"see host processes", func(t []string) error { return open("/proc/"+t[3]+"/status", os.O_RDONLY) }},
	{"read shadow", reads("/etc/shadow", "/proc/1/root/etc/shadow")},
	{"read about process 1", reads("/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/exe", "/proc/1/cwd/", "/proc/1/root/", "/proc/1/fd/3", "/proc/1/ns/mnt")},
	{"read about the kernel", reads("/proc/kcore", "/proc/keys", "/proc/kallsyms", "/proc/config.gz", "/proc/cmdline", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/sys/kernel")},
	{"read host devices", reads("/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/kvm", "/dev/fuse", "/dev/net/tun")},
	{"reach the docker socket", reads("/var/run/docker.sock", "/run/docker.sock")},
	{"write passwd", writes("/etc/passwd")},
	{"write to /", writes("/x")},
	{"write to /usr", writes("/usr/bin/x")},
	{"write to /dev", writes("/dev/x")},
	{"write to /run", writes("/run/x")},
	{"change the guest", writes("/run/belay-sandbox")},
	{"write sysctl", writes("/proc/sys/kernel/hostname")},
	{"write sysrq", writes("/proc/sysrq-trigger")},
	{"become root", func([]string) error { return call6(unix.SYS_SETUID, 0) }},
	{"mount", system(unix.SYS_MOUNT, text("none"), text("/tmp"), text("tmpfs"), 0, 0)},
	{"umount", system(unix.SYS_UMOUNT2, text("/proc"), unix.MNT_DETACH)},
	{"remount the system writable", system(unix.SYS_MOUNT, 0, text("/usr"), 0, unix.MS_REMOUNT|unix.MS_BIND, 0)},
	{"fsopen", system(unix.SYS_FSOPEN, text("tmpfs"), 0)},
	{"pivot_root", system(unix.SYS_PIVOT_ROOT, text("/tmp"), text("/tmp"))},
	{"chroot", system(unix.SYS_CHROOT, text("/tmp"))},
	{"mknod", system(unix.SYS_MKNODAT, ^uintptr(99), text("/tmp/mem"), unix.S_IFCHR|0o600, 0x101)},
	{"unshare user", system(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)},
	{"unshare mount", system(unix.SYS_UNSHARE, unix.CLONE_NEWNS)},
	{"clone into a user namespace", func([]string) error { return clone(unix.CLONE_NEWUSER) }},
	{"clone3", system(unix.SYS_CLONE3, 0, 0)},
	{"ptrace", system(unix.SYS_PTRACE, unix.PTRACE_TRACEME)},
	{"ptrace process 1", system(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1)},
	{"process_vm_readv", system(unix.SYS_PROCESS_VM_READV, 1)},
	{"keyctl", system(unix.SYS_KEYCTL, 0, ^uintptr(2), 0)},
	{"bpf", system(unix.SYS_BPF, 5)},
	{"perf_event_open", system(unix.SYS_PERF_EVENT_OPEN)},
	{"io_uring", system(unix.SYS_IO_URING_SETUP, 1)},
	{"userfaultfd", system(unix.SYS_USERFAULTFD)},
	{"open_by_handle_at", system(unix.SYS_OPEN_BY_HANDLE_AT)},
	{"packet socket", func([]string) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
	{"vsock", func([]string) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
	{"crypto socket", func([]string) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
	{"netfilter", func([]string) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER) }},
	{"raw socket", func([]string) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
	{"TIOCSTI", terminal(unix.TIOCSTI)},
	{"TIOCSTI with rubbish", terminal(0xdeadbeef<<32 | unix.TIOCSTI)},
	{"TIOCSTI sign extended", terminal(0xffffffff<<32 | unix.TIOCSTI)},
	{"TIOCLINUX", terminal(0x541c)},
}

// escape is what the hostile program does: it prints the name of each attempt that succeeded, then what it sees.
func escape(targets string) {
	for _, a := range attempts {
		if err := a.try(strings.Split(targets, " ")); err == nil || strings.Contains(err.Error(), "cannot try") {
			fmt.Printf("ESCAPE %s: %v\n", a.name, err)
		}
	}
	// Process 1 may be sent anything: it stays.
	for s := range syscall.Signal(32) {
		_ = syscall.Kill(1, s) // refused or ignored
	}
	fmt.Println("done")
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runtimeIn(t, dir)
	s := create(t, r, sandbox.Profile{})
	first := processIn(t, dir, "boxes/main.json")
	root, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	program, err := root.OpenFile("hostile", os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	if _, err := io.Copy(program, self); err != nil {
		t.Fatal(err)
	}
	if err := program.Close(); err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	abstract := filepath.Base(filepath.Dir(dir))
	listen(t, "unix", "@"+abstract)
	tcp := listen(t, "tcp", "127.0.0.1:0")
	// Process ids in the sandbox are small ones.
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sleeper.Process.Kill(); _ = sleeper.Wait() })
	targets := []string{canary, abstract, tcp.Addr().String(), fmt.Sprint(sleeper.Process.Pid)}
	for _, a := range attempts[:3] {
		if err := a.try(targets); err != nil {
			t.Fatalf("%s does not even work outside: %v", a.name, err)
		}
	}
	c := sandboxtest.Command("./hostile")
	c.Env = map[string]string{escapeVariable: strings.Join(targets, " ")}
	for _, readOnly := range []bool{false, true} {
		c.ReadOnly = readOnly
		got := run(t, s, sandbox.ExecID(fmt.Sprint("escape-", readOnly)), c)
		if string(got.Output) != "done\n" || got.Exit != 0 {
			t.Errorf("read-only %v: exit %d:\n%s", readOnly, got.Exit, got.Output)
		}
	}
	alive(t, dir, s, first)
}

func TestNothingIsInherited(t *testing.T) {
	t.Setenv("BELAY_CANARY", "secret")
	// A descriptor that is not closed on exec, as a careless parent leaves it.
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[0])
	defer syscall.Close(pipe[1])
	s := create(t, newRuntime(t), sandbox.Profile{Env: map[string]string{"FROM_PROFILE": "1"}})
	for _, readOnly := range []bool{false, true} {
		got := run(t, s, sandbox.ExecID(fmt.Sprint(readOnly)), sandbox.Command{
			Argv: []string{"sh", "-c", "cat /proc/self/environ | tr '\\0' '\\n' | cut -d= -f1; ls /proc/$$/fd"}, Timeout: sandboxtest.Command("").Timeout, ReadOnly: readOnly,
			Env: map[string]string{"FROM_COMMAND": "1"},
		})
		words := strings.Fields(string(got.Output))
		slices.Sort(words)
		if have, want := strings.Join(words, " "), "0 1 2 FROM_COMMAND FROM_PROFILE HOME LANG PATH PWD TERM"; have != want {
			t.Errorf("read-only %v: variables and descriptors %q; want %q", readOnly, have, want)
		}
	}
}
