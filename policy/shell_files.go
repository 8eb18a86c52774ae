package policy

import (
	"path"
	"strings"

	"belay/agent"
)

// judgement is how a part of a command counts, and why.
type judgement struct {
	risk    agent.Risk
	why     string
	effects []string
}

func (j judgement) worse(k judgement) judgement {
	if k.risk.Level() > j.risk.Level() {
		j.risk, j.why = k.risk, k.why
	}
	j.effects = append(j.effects, k.effects...)
	return j
}

// file judges that a redirection touches a file.
func (w *walker) file(x word, u use, f *frame) {
	j := w.touch(x, u, f)
	w.find(x.at, j.risk, j.why, j.effects...)
}

// touch records the paths that a word stands for, in each folder that the shell may be in, and judges their use.
func (w *walker) touch(x word, u use, f *frame) judgement {
	relative := !strings.HasPrefix(x.lead, "/") && !strings.HasPrefix(x.lead, "~")
	switch {
	case x.text == "-" || x.text == "" && x.known():
		return judgement{risk: agent.RiskLow}
	case strings.HasPrefix(x.lead, "/dev/tcp") || strings.HasPrefix(x.lead, "/dev/udp"):
		w.hosts = append(w.hosts, strings.Split(x.text+"///", "/")[3])
		return judgement{agent.RiskHigh, "opens a network connection", []string{doesNetwork}}
	case x.dynamic, relative && len(f.dirs) == 0:
		return unknownPath(x, u)
	}
	all := judgement{risk: agent.RiskLow}
	for _, dir := range f.dirs {
		clean, escapes := resolve(x.text, dir)
		if neutral(clean) {
			continue
		}
		p := pathOf(clean, u)
		p.Escapes = escapes
		w.paths = append(w.paths, p)
		if all = all.worse(judgePath(p, x)); !relative {
			break
		}
	}
	if !relative && len(f.dirs) == 0 {
		return w.touch(x, u, &frame{dirs: []string{workspace}})
	}
	return all
}

// unknownPath judges a path of which a part is only known when the command runs.
func unknownPath(x word, u use) judgement {
	switch {
	case secret(x.text):
		return judgement{agent.RiskHigh, "touches " + x.text + ", which may hold credentials", []string{doesSecret, doesRead}}
	case u == useRead:
		return judgement{agent.RiskMedium, "reads a path that is only known when it runs: " + x.text, []string{doesRead}}
	case u == useDelete:
		return judgement{agent.RiskHigh, "deletes a path that is only known when it runs: " + x.text, []string{doesDelete, doesDynamic}}
	}
	return judgement{agent.RiskHigh, "writes a path that is only known when it runs: " + x.text, []string{doesWrite, doesDynamic}}
}

func judgePath(p Path, x word) judgement {
	inside := p.InWorkspace || p.InTmp
	effect := []string{doesRead}
	switch {
	case p.Delete:
		effect = []string{doesDelete}
	case p.Write:
		effect = []string{doesWrite}
	}
	switch {
	case p.Secret:
		return judgement{agent.RiskHigh, "touches " + p.Path + ", which may hold credentials", append(effect, doesSecret)}
	case p.Read && below(p.Path, "/dev"):
		return judgement{agent.RiskHigh, "reads the device " + p.Path, effect}
	case p.Read && inside && x.glob && strings.Contains(globParts(p.Path), "/."):
		return judgement{agent.RiskMedium, "reads hidden files: " + p.Path, effect}
	case p.Read && inside:
		return judgement{agent.RiskLow, "", effect}
	case p.Read:
		return judgement{agent.RiskMedium, "reads " + p.Path + ", outside of the workspace", effect}
	case !inside:
		return judgement{agent.RiskHigh, "writes " + p.Path + ", outside of the workspace", effect}
	case strings.Contains(p.Path+"/", "/.git/"):
		return judgement{agent.RiskHigh, "changes " + p.Path + ", which decides what git does", append(effect, doesPersist)}
	case x.glob && strings.Contains(globParts(p.Path), "/."):
		return judgement{agent.RiskHigh, "changes hidden files: " + p.Path, effect}
	case p.Delete && sweeping(p.Path):
		return judgement{agent.RiskHigh, "deletes all of " + p.Path, effect}
	case p.Delete:
		return judgement{agent.RiskMedium, "deletes " + p.Path, effect}
	}
	return judgement{agent.RiskMedium, "writes " + p.Path, effect}
}

// globParts gives the components of a path that hold wildcards.
func globParts(p string) string {
	var all strings.Builder
	for part := range strings.SplitSeq(p, "/") {
		if strings.ContainsAny(part, "*?[") {
			all.WriteString("/" + part)
		}
	}
	return all.String()
}

// sweeping says whether a path is one of the two writable roots, or everything right below one.
func sweeping(p string) bool {
	if strings.Trim(path.Base(p), "*?.") == "" {
		p = path.Dir(p)
	}
	return p == workspace || p == scratch
}
