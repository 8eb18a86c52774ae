//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"belay/sandbox"
	"belay/sandbox/process/wire"
)

// maxSession bounds the state of a session, in bytes.
const maxSession = 256 << 10

// sessionShell is what bash runs for a script in a session, as "bash -c sessionShell bash <script> <dir> <name>...". The
// names are those of the command's own variables, which go before the session's; their values are in the environment,
// where no other user of the host can read them.
// The state is a script that the previous shell of the session wrote: it was written by whatever ran in the sandbox, so
// nothing but a shell in the sandbox ever runs it. The trap is for a script that exits; one that sets a trap of its own or
// just ends is covered by the call at the end. The last line tells a whole state from a cut one.
const sessionShell = `__belay_save() {
  local status=$?
  if [ -z "${__belay_saved:-}" ]; then
    __belay_saved=1
    {
      builtin printf '%s\0' "$PWD"
      builtin printf 'cd -- %q\n' "$PWD"
      builtin export -p
      builtin printf '# end\n'
    } 2>/dev/null >&101
  fi
  return "$status"
}
__belay_script=$1 __belay_dir=$2 __belay_env=()
shift 2
while [ $# -gt 0 ]; do __belay_env+=("$1=${!1}"); shift; done
. /dev/fd/100 2>/dev/null
exec 100<&-
if [ ${#__belay_env[@]} -gt 0 ]; then export -- "${__belay_env[@]}"; fi
if [ -n "$__belay_dir" ]; then cd -- "$__belay_dir"; fi
unset __belay_env __belay_dir
trap __belay_save EXIT
eval "$__belay_script"
__belay_save`

const sessionEnd = "\n# end\n"

// environment is what a command starts with: nothing of the host's.
func environment(profile, command map[string]string) []string {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": boxHome, "LANG": "C.UTF-8", "TERM": "dumb",
	}
	maps.Copy(env, profile)
	maps.Copy(env, command)
	var ps []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		ps = append(ps, k+"="+env[k])
	}
	return ps
}

// becomes says what the command role is to become for a command.
func becomes(c sandbox.Command, profile map[string]string) spec {
	s := spec{Argv: c.Argv, Env: environment(profile, c.Env), Dir: c.Dir, Session: c.Session != ""}
	if s.Dir == "" {
		s.Dir = sandbox.Workspace
	}
	switch {
	case c.Session != "":
		s.Argv = append([]string{"bash", "--noprofile", "--norc", "-c", sessionShell, "bash", c.Script, c.Dir}, slices.Sorted(maps.Keys(c.Env))...)
	case c.Script != "":
		s.Argv = []string{"bash", "--noprofile", "--norc", "-c", c.Script}
	}
	return s
}

// loadSession gives the script that a session's next shell starts from; an unknown session starts from nothing.
func loadSession(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(wire.SessionsDir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session %s: %w", name, err)
	}
	return b, nil
}

// saveSession stores the state that a shell left in a file, unless it left none that is whole, and gives the shell's last
// working folder, for display. With keep false it only reads the folder.
func saveSession(name string, state *os.File, keep bool) (string, error) {
	b, err := io.ReadAll(io.NewSectionReader(state, 0, maxSession+1))
	if err != nil {
		return "", fmt.Errorf("session %s: %w", name, err)
	}
	dir, script, ok := bytes.Cut(b, []byte{0})
	if !ok || len(b) > maxSession || !bytes.HasSuffix(script, []byte(sessionEnd)) {
		return "", nil
	}
	if keep {
		if err := wire.WriteFile(filepath.Join(wire.SessionsDir, name), script); err != nil {
			return "", fmt.Errorf("session %s: %w", name, err)
		}
	}
	return shownDir(string(dir)), nil
}

// shownDir passes a folder that can be shown and used as Command.Dir, and no other.
func shownDir(dir string) string {
	if !path.IsAbs(dir) || len(dir) > 4096 || !utf8.ValidString(dir) || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ""
	}
	return dir
}
