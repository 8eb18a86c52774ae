package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// workspace is where the sandbox keeps the workspace, and scratch its private temporary folder.
const (
	workspace = "/workspace"
	scratch   = "/tmp"
)

// Path is one path that a call touches.
type Path struct {
	Path        string `json:"path"`         // absolute and clean; "~" is the home folder; wildcards stand as written
	Read        bool   `json:"read"`         // its content is read
	Write       bool   `json:"write"`        // it is made, changed or removed
	Delete      bool   `json:"delete"`       // it is removed
	InWorkspace bool   `json:"in_workspace"` // it is the workspace or below it
	InTmp       bool   `json:"in_tmp"`       // it is /tmp or below it
	Escapes     bool   `json:"escapes"`      // it was written relative to the workspace and leaves it
	Secret      bool   `json:"secret"`       // by its name it holds credentials
}

// use says what happens to a path.
type use int

const (
	useRead use = iota
	useWrite
	useDelete
)

func pathOf(clean string, u use) Path {
	return Path{
		Path: clean, Read: u == useRead, Write: u != useRead, Delete: u == useDelete,
		InWorkspace: below(clean, workspace), InTmp: below(clean, scratch), Secret: secret(clean),
	}
}

func (p Path) compare(q Path) int {
	return cmp.Or(strings.Compare(p.Path, q.Path), cmp.Compare(p.rank(), q.rank()))
}

func (p Path) rank() int {
	rank := 0
	for i, set := range []bool{p.Read, p.Write, p.Delete, p.Escapes} {
		if set {
			rank |= 1 << i
		}
	}
	return rank
}

// neutral says whether a path is a device or descriptor that nothing is kept in.
func neutral(clean string) bool {
	switch clean {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/random", "/dev/urandom":
		return true
	}
	return strings.HasPrefix(clean, "/dev/fd/")
}

// below says whether a clean path is dir or under it.
func below(clean, dir string) bool {
	return clean == dir || strings.HasPrefix(clean, dir+"/")
}

// resolve makes a path absolute and clean. escapes says that it was relative to a folder of the workspace and leaves it.
func resolve(text, dir string) (clean string, escapes bool) {
	if path.IsAbs(text) || strings.HasPrefix(text, "~") {
		return path.Clean(text), false
	}
	clean = path.Join(dir, text)
	return clean, below(dir, workspace) && !below(clean, workspace)
}

// Names that hold credentials: of folders, and of files.
var (
	secretRoots   = []string{"/run/secrets", "/var/run/secrets", "/proc/self/environ", "/etc/shadow", "/etc/gshadow", "/etc/sudoers"}
	secretFolders = []string{".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", "gcloud"}
	secretFiles   = []string{
		".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".vault-token", ".my.cnf", ".htpasswd", ".dockercfg", ".env",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "credentials.json", "environ", "authorized_keys", "kubeconfig",
	}
	secretEndings    = []string{".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".kdbx", ".tfstate"}
	secretBeginnings = []string{".env.", "secret.", "secrets.", "id_rsa", "id_ed25519"}
	harmlessEndings  = []string{".example", ".sample", ".template", ".dist", ".go", ".py", ".js", ".ts", ".rs", ".md", ".pub"}
)

// secret says whether a path, which may hold wildcards, can name something that by its name holds credentials.
func secret(p string) bool {
	p = strings.ToLower(p)
	for _, root := range secretRoots {
		if below(p, root) {
			return true
		}
	}
	for part := range strings.SplitSeq(p, "/") {
		if slices.Contains(secretFolders, part) || strings.ContainsAny(part, "*?[") && secretPattern(part) {
			return true
		}
	}
	name := path.Base(p)
	ends := func(ending string) bool { return strings.HasSuffix(name, ending) }
	begins := func(beginning string) bool { return strings.HasPrefix(name, beginning) }
	switch {
	case slices.Contains(secretFiles, name):
		return true
	case slices.ContainsFunc(harmlessEndings, ends):
		return false
	}
	return slices.ContainsFunc(secretEndings, ends) || slices.ContainsFunc(secretBeginnings, begins)
}

// secretPattern says whether a wildcard was aimed at such a name. One of nothing but wildcards is aimed at nothing.
func secretPattern(pattern string) bool {
	if strings.Trim(pattern, "*?") == "" {
		return false
	}
	for _, list := range [][]string{secretFolders, secretFiles, {"server.pem", "server.key", ".env.local", "secrets.yaml"}} {
		for _, s := range list {
			if hit, err := path.Match(pattern, s); hit || err != nil {
				return true
			}
		}
	}
	return false
}
