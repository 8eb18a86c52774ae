package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"belay/sandbox"
)

// level is the isolation that this runtime gives, in the words of policy.
const level = "process"

// boxUser is who commands are, as they see themselves.
const boxUser = 1000

// canaryScript tries what must not be possible; $CANARY names a file of the host, $HIDDEN what a sandbox of this kind does not
// have, $USER_ID who it is. It prints what it could do, and "held" when that was nothing.
const canaryScript = `
failed=
bad() { echo "$*"; failed=1; }
if cat "$CANARY" >/dev/null 2>&1; then bad "can read $CANARY of the host"; fi
for path in $HIDDEN; do if [ -e "$path" ]; then bad "can see $path of the host"; fi; done
if (echo x > /usr/.belay) 2>/dev/null || (echo x > /etc/.belay) 2>/dev/null; then bad "can write to the system"; fi
if ! (echo x > /workspace/.belay) 2>/dev/null; then bad "cannot write to /workspace"; fi
if [ "$(wc -l < /proc/net/route)" -gt 1 ]; then bad "has a network route"; fi
if grep -v -e ' lo:' -e '|' /proc/net/dev | grep -q :; then bad "has a network interface"; fi
if [ "$(id -u)" != "$USER_ID" ] || [ "$(id -u)" = 0 ]; then bad "runs as user $(id -u)"; fi
if [ "$(grep -c . <(ps -e -o pid= 2>/dev/null))" -gt 20 ]; then bad "sees processes of the host"; fi
while read -r key value; do
  case "$key $value" in
    "NoNewPrivs: 0") bad "may gain privileges" ;;
    "CapEff: 0000000000000000"|"CapPrm: 0000000000000000") ;;
    CapEff:*|CapPrm:*) bad "has capabilities $value" ;;
    "Seccomp: "[01]) echo "no seccomp filter" ;;
  esac
done < /proc/self/status
for name in $(compgen -e); do
  case " $ALLOWED PATH HOME LANG TERM CANARY HIDDEN USER_ID ALLOWED PWD OLDPWD SHLVL _ " in
    *" $name "*) ;;
    *) bad "has the variable $name of the host" ;;
  esac
done
[ -z "$failed" ] && echo held`

// Probe implements sandbox.Runtime.
func (r *Runtime) Probe(ctx context.Context, p sandbox.Profile) (sandbox.Report, error) {
	if err := checkProfile(p); err != nil {
		return sandbox.Report{}, fmt.Errorf("probe: %w", err)
	}
	version, err := exec.CommandContext(ctx, r.config.Bwrap, "--version").Output()
	if err != nil {
		return sandbox.Report{}, fmt.Errorf("probe: %s: %w; install bubblewrap: apt-get install bubblewrap, dnf install bubblewrap or apk add bubblewrap: %w", r.config.Bwrap, err, sandbox.ErrUnsupported)
	}
	report := sandbox.Report{Level: level, Runtime: strings.TrimSpace(string(version)) + ", Linux " + kernel()}
	missing, err := r.Try(ctx, probeID(), p)
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		report.Missing = append(report.Missing, name)
		report.Warnings = append(report.Warnings, fmt.Sprintf("%s: not limited: %s%s", name, missing[name], remedy(name)))
	}
	if os.Geteuid() == 0 && r.uid() == 0 {
		report.Warnings = append(report.Warnings, "commands run as this host's root without its powers: run the worker as an unprivileged user")
	}
	if err != nil {
		return report, fmt.Errorf("probe: %w%s", err, remedy(err.Error()))
	}
	return report, nil
}

func probeID() sandbox.ID { return sandbox.ID("probe-" + strings.ToLower(rand.Text())) }

// Try makes a sandbox of that id, tries in it what must not be possible, and removes it. It gives what the host lacks, with the reasons,
// by the names of sandbox.Profile.Unconfined.
func (r *Runtime) Try(ctx context.Context, id sandbox.ID, p sandbox.Profile) (map[string]string, error) {
	b := &box{runtime: r, id: id, dir: r.folder(id)}
	if _, err := r.makeFolder(ctx, id, withDefaults(p)); err != nil {
		return nil, err
	}
	missing, err := b.try(ctx, p)
	return missing, errors.Join(err, r.Destroy(context.WithoutCancel(ctx), id))
}

func (b *box) try(ctx context.Context, p sandbox.Profile) (map[string]string, error) {
	ready, err := b.start(ctx)
	if err != nil {
		return ready.Missing, fmt.Errorf("%w: %w", sandbox.ErrUnsupported, err)
	}
	canary := filepath.Join(b.runtime.dir, "canary-"+rand.Text())
	if err := os.WriteFile(canary, []byte("canary"), 0o644); err != nil {
		return ready.Missing, err
	}
	defer os.Remove(canary)
	hidden, user := "/etc/shadow /root /sys", boxUser
	if b.runtime.config.Launcher != nil { // the files are an image's, and users are the host's
		hidden, user = "", cmp.Or(b.runtime.uid(), os.Geteuid())
	}
	result, err := b.Exec(ctx, "probe", sandbox.Command{
		Script: canaryScript, Timeout: 20 * time.Second,
		Env: map[string]string{
			"CANARY": canary, "HIDDEN": hidden, "USER_ID": strconv.Itoa(user),
			"ALLOWED": strings.Join(slices.Sorted(maps.Keys(p.Env)), " "),
		},
	})
	if err != nil {
		return ready.Missing, err
	}
	said := strings.TrimSpace(string(result.Output))
	if slices.Contains(p.Unconfined, "seccomp") {
		said = strings.TrimPrefix(said, "no seccomp filter\n")
	}
	if said != "held" {
		return ready.Missing, fmt.Errorf("the sandbox does not hold: exit %d: %s", result.Exit, said)
	}
	return ready.Missing, nil
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "of unknown version"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// remedies say what to do about an error, by a part of its text: first match.
var remedies = []struct{ part, text string }{
	{"setting up uid map", "the kernel's AppArmor lets no program make user namespaces: install bubblewrap's profile (Ubuntu: apt-get install apparmor-profiles, then copy bwrap-userns-restrict from /usr/share/apparmor/extra-profiles to /etc/apparmor.d), or set kernel.apparmor_restrict_unprivileged_userns=0"},
	{"RTM_NEWADDR", "the kernel's AppArmor confines user namespaces: install bubblewrap's profile (Ubuntu: apt-get install apparmor-profiles), or set kernel.apparmor_restrict_unprivileged_userns=0"},
	{"Can't mount proc", "in a container /proc is masked: run it with --security-opt systempaths=unconfined"},
	{"reating new namespace", "user namespaces are off: set kernel.unprivileged_userns_clone=1 and user.max_user_namespaces above 0; in a container, run it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"},
	{"ermission", "in a container, run it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"},
	{"memory", "give the worker a control group of its own: as root on version 1 or 2, else run it by systemd with Delegate=yes and DelegateSubgroup=worker"},
	{"pids", "give the worker a control group of its own: as root on version 1 or 2, else run it by systemd with Delegate=yes and DelegateSubgroup=worker"},
	{"cpu", "give the worker a control group of its own: as root on version 1 or 2, else run it by systemd with Delegate=yes and DelegateSubgroup=worker"},
}

func remedy(said string) string {
	for _, r := range remedies {
		if strings.Contains(said, r.part) {
			return "; " + r.text
		}
	}
	return ""
}
