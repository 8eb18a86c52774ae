package process

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"belay/sandbox"
	"belay/sandbox/process/seccomp"
	"belay/sandbox/process/wire"
)

//go:generate env CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o guest/belay-sandbox ./guest

// The folder's only sure file says why; see there.
//
//go:embed guest/belay-sandbox*
var embedded embed.FS

const (
	defaultMaxSandboxes = 64
	defaultUID          = 1_900_000_000
)

// Runtime is a sandbox.Runtime. It is safe for concurrent use, also by several workers with one state folder.
type Runtime struct {
	config Config
	dir    string // Config.StateDir, absolute
	guest  string
	filter []byte // seccomp program; empty: not possible here
	log    *slog.Logger
}

var _ sandbox.Runtime = (*Runtime)(nil)

// New prepares the state folder. Whether sandboxes can be made here, Probe says.
func New(c Config) (*Runtime, error) {
	if c.StateDir == "" {
		return nil, errors.New("process sandboxes: state folder: empty; expected a path")
	}
	if c.MaxSandboxes < 0 || c.UID < 0 {
		return nil, fmt.Errorf("process sandboxes: at most %d, user %d: expected 0 or more", c.MaxSandboxes, c.UID)
	}
	dir, err := filepath.Abs(c.StateDir)
	if err != nil {
		return nil, fmt.Errorf("process sandboxes: state folder %s: %w", c.StateDir, err)
	}
	if c.MaxSandboxes == 0 {
		c.MaxSandboxes = defaultMaxSandboxes
	}
	if c.UID == 0 {
		c.UID = defaultUID
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Bwrap == "" {
		c.Bwrap = findBwrap()
	}
	r := &Runtime{config: c, dir: dir, log: c.Logger}
	if err := os.MkdirAll(r.sandboxes(), 0o700); err != nil {
		return nil, fmt.Errorf("process sandboxes: %w", err)
	}
	if r.guest, err = installGuest(dir, c.Guest); err != nil {
		return nil, fmt.Errorf("process sandboxes: %w", err)
	}
	if hasFilters() {
		if code, err := seccomp.Compile(); err != nil {
			r.log.Warn("no seccomp filter", "error", err)
		} else {
			r.filter = seccomp.Bytes(code)
		}
	}
	return r, nil
}

// findBwrap looks where distributions install bubblewrap; /usr/bin is also what AppArmor's profile for it names.
func findBwrap() string {
	places := []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"}
	if i := slices.IndexFunc(places, func(p string) bool { _, err := os.Stat(p); return err == nil }); i >= 0 {
		return places[i]
	}
	return places[0]
}

// hasFilters asks the kernel whether it has seccomp filters.
func hasFilters() bool {
	action := uint32(seccomp.KillProcess)
	const getActionAvailable = 2 // SECCOMP_GET_ACTION_AVAIL
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, getActionAvailable, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// installGuest gives the path of the guest program.
func installGuest(dir, override string) (string, error) {
	if override != "" {
		return filepath.Abs(override)
	}
	return wire.Install(embedded, "guest/belay-sandbox", dir)
}

func (r *Runtime) sandboxes() string { return filepath.Join(r.dir, "sandboxes") }

func (r *Runtime) folder(id sandbox.ID) string { return filepath.Join(r.sandboxes(), string(id)) }

// uid is whom commands run as on the host: nobody else than us, unless we are root with root's powers. Root in a
// container without them is as confined as a user.
func (r *Runtime) uid() int {
	if os.Geteuid() != 0 {
		return 0
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0
	}
	const needed = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE
	if data[0].Effective&needed != needed {
		return 0
	}
	return r.config.UID
}

// Create implements sandbox.Runtime.
func (r *Runtime) Create(ctx context.Context, id sandbox.ID, p sandbox.Profile) (sandbox.Sandbox, error) {
	if err := errors.Join(id.Check(), checkProfile(p)); err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	made, err := r.makeFolder(ctx, id, withDefaults(p))
	if err != nil {
		return nil, fmt.Errorf("create sandbox %s: %w", id, err)
	}
	b := &box{runtime: r, id: id, dir: r.folder(id)}
	if err := b.wake(ctx); err != nil {
		if made {
			err = errors.Join(err, r.Destroy(context.WithoutCancel(ctx), id))
		}
		return nil, fmt.Errorf("create sandbox %s: %w", id, err)
	}
	return b, nil
}

// makeFolder makes a sandbox's folder, unless it is there. The profile is written last: a folder without is unfinished.
func (r *Runtime) makeFolder(ctx context.Context, id sandbox.ID, p sandbox.Profile) (bool, error) {
	unlock, err := flock(ctx, filepath.Join(r.dir, "create.lock"))
	if err != nil {
		return false, err
	}
	defer unlock()
	profile := filepath.Join(r.folder(id), wire.ProfileFile)
	if _, err := os.Stat(profile); err == nil {
		return false, nil
	}
	ids, err := r.List(ctx)
	if err != nil {
		return false, err
	}
	if len(ids) >= r.config.MaxSandboxes {
		return false, fmt.Errorf("%d of %d exist: %w", len(ids), r.config.MaxSandboxes, sandbox.ErrBusy)
	}
	if err := os.MkdirAll(filepath.Join(r.folder(id), wire.WorkspaceDir), 0o700); err != nil {
		return false, err
	}
	if err := os.Chmod(filepath.Join(r.folder(id), wire.WorkspaceDir), 0o755); err != nil {
		return false, err
	}
	return true, errors.Join(wire.WriteFile(profile, p), wire.SyncDir(r.sandboxes()))
}

// Open implements sandbox.Runtime.
func (r *Runtime) Open(ctx context.Context, id sandbox.ID) (sandbox.Sandbox, error) {
	if err := id.Check(); err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	b := &box{runtime: r, id: id, dir: r.folder(id)}
	err := b.wake(ctx)
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, sandbox.ErrNotFound) || ctx.Err() != nil:
		return nil, fmt.Errorf("open sandbox %s: %w", id, err)
	}
	return nil, fmt.Errorf("open sandbox %s: %w: %w", id, sandbox.ErrLost, err)
}

// List implements sandbox.Runtime.
func (r *Runtime) List(context.Context) ([]sandbox.ID, error) {
	entries, err := os.ReadDir(r.sandboxes())
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	ids := make([]sandbox.ID, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, sandbox.ID(e.Name()))
	}
	return ids, nil
}

// checkProfile says what is wrong with a profile, naming the field.
func checkProfile(p sandbox.Profile) error {
	for field, n := range map[string]int{"memory_mib": p.MemoryMiB, "pids": p.PIDs, "cpu_percent": p.CPUPercent, "tmp_mib": p.TmpMiB} {
		if n < 0 {
			return fmt.Errorf("profile %s: %s %d: expected 0 or more", p.Name, field, n)
		}
	}
	for _, u := range p.Unconfined {
		if !slices.Contains([]string{"memory", "pids", "cpu", "seccomp"}, u) {
			return fmt.Errorf("profile %s: unconfined %q: expected memory, pids, cpu or seccomp", p.Name, u)
		}
	}
	return sandbox.CheckEnv("profile "+p.Name+": env", p.Env)
}

// withDefaults gives a limit to everything: none is never meant.
func withDefaults(p sandbox.Profile) sandbox.Profile {
	for field, value := range map[*int]int{&p.MemoryMiB: 2048, &p.PIDs: 512, &p.CPUPercent: 200, &p.TmpMiB: 1024} {
		if *field == 0 {
			*field = value
		}
	}
	return p
}

// flock takes a file's lock, waiting for it as long as ctx allows, and gives what releases it.
func flock(ctx context.Context, path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	taken := make(chan error, 1)
	fd := int(f.Fd()) // blocking from now on
	go func() {
		err := syscall.Flock(fd, syscall.LOCK_EX)
		for err == syscall.EINTR {
			err = syscall.Flock(fd, syscall.LOCK_EX)
		}
		taken <- err
	}()
	select {
	case err := <-taken:
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return func() { f.Close() }, nil
	case <-ctx.Done():
		go func() { <-taken; f.Close() }()
		return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
	}
}
