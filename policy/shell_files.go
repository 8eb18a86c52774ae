package policy

import (
	"path"
	"regexp"
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

func (c *call) copies(p program, ops []word, got optionsGiven) {
	last := len(ops) - 1
	if got.has("-t", "--target-directory") {
		last = len(ops)
	}
	for _, name := range []string{"-m", "--mode"} {
		if setsID.MatchString(got.values[name].text) {
			c.high("mode "+got.values[name].text+" may give a program another user's rights", doesPrivilege)
		}
	}
	from, to := ops[:max(last, 0)], ops[max(last, 0):]
	if p.kind == kindLink && len(from) == 0 {
		from = to // ln TARGET
	}
	for _, o := range from {
		switch p.kind {
		case kindCopy:
			c.touch(o, useRead)
		case kindMove:
			u := useWrite
			if len(to) == 1 && strings.HasPrefix(to[0].text, "/") && !below(path.Clean(to[0].text), workspace) {
				u = useDelete // of the workspace, it is lost
			}
			c.touch(o, u)
		case kindLink:
			c.leadsTo(o, to)
		}
	}
	c.touchAll(to, useWrite)
}

// leadsTo judges what a link leads to: outside of the workspace, later writes through it escape.
func (c *call) leadsTo(target word, links []word) {
	at := workspace
	if len(links) == 1 {
		at, _ = resolve(path.Dir(links[0].text), workspace)
	}
	clean, _ := resolve(target.text, at)
	if !target.known() || !below(clean, workspace) {
		c.high("a link that may lead outside of the workspace: "+target.text, doesWrite)
	}
}

// setsID finds file modes that give a program the rights of its owner.
var setsID = regexp.MustCompile(`s|^0*[2-7][0-7]{3}$`)

func (c *call) mode(ops []word) {
	if len(ops) > 0 && (!ops[0].known() || setsID.MatchString(ops[0].text)) {
		c.high("mode "+ops[0].text+" may give a program another user's rights", doesPrivilege)
	}
	c.touchAll(ops[min(1, len(ops)):], useWrite)
}
