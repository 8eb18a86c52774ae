package policy

import (
	"path"
	"regexp"
	"strings"

	"belay/agent"
)

// changeFolder judges cd and keeps track of the folder. The tool keeps the folder for later commands, whose paths are judged
// without knowing it: so cd may not lead to where the same name means more.
func (c *call) changeFolder(ops []word) {
	target := literal("~", c.at)
	if len(ops) > 0 {
		target = ops[0]
	}
	if !target.known() || target.text == "-" || len(c.f.dirs) == 0 {
		c.raise(agent.RiskMedium, "changes to a folder that is only known when it runs", doesPersist)
		c.f.dirs = nil
		return
	}
	var dirs []string
	for _, dir := range c.f.dirs {
		clean, escapes := resolve(target.text, dir)
		p := pathOf(clean, useRead)
		p.Escapes = escapes
		c.w.paths = append(c.w.paths, p)
		switch {
		case !p.InWorkspace && !p.InTmp:
			c.high("leaves the workspace for "+clean, doesPersist)
		case strings.Contains(clean, "/."):
			c.high("changes to the hidden folder "+clean, doesPersist)
		}
		dirs = union([]string{clean}, append(dirs, clean))
	}
	c.f.dirs = dirs
}

// sed judges a sed script and its files.
func (c *call) sed(ops []word, got optionsGiven) {
	var scripts []word
	for _, o := range got.all {
		if o.name == "-e" || o.name == "--expression" {
			scripts = append(scripts, o.value)
		}
	}
	if len(scripts) == 0 && len(ops) > 0 {
		scripts, ops = ops[:1], ops[1:]
	}
	for _, s := range scripts {
		if !s.known() || !sedOnlyEdits(s.text) {
			c.high("a script that may run a program, or read or write other files", doesExec)
		}
	}
	for _, o := range got.all {
		if (o.name == "-i" || o.name == "--in-place") && strings.Contains(o.value.text, "/") {
			c.high("keeps copies in another folder: "+o.value.text, doesWrite)
		}
	}
	c.touchAll(ops, usesOf(kindSed, got))
}

var (
	sedAddress = `(?:\d+(?:~\d+)?|\$|\+\d+|~\d+|/(?:[^/\\\n]|\\.)*/[IM]*)`
	// sedCommands are a script's commands that do nothing but edit the text: addresses, then a command.
	sedCommands = regexp.MustCompile(`^(?:[\s;{}]*(?:` + sedAddress + `(?:\s*,\s*` + sedAddress + `)?)?\s*!?\s*(?:` +
		`[pdqQ=nNPDhHgGxFlz]\s*\d*\s*(?:[;}\n]|$)` +
		`|[btT:]\s*\w*\s*(?:[;}\n]|$)` +
		`|s/(?:[^/\\\n]|\\.)*/(?:[^/\\]|\\.|\\\n)*/[gpiI0-9mM]*\s*(?:[;}\n]|$)` +
		`|s\|(?:[^|\\\n]|\\.)*\|(?:[^|\\]|\\.|\\\n)*\|[gpiI0-9mM]*\s*(?:[;}\n]|$)` +
		`|s#(?:[^#\\\n]|\\.)*#(?:[^#\\]|\\.|\\\n)*#[gpiI0-9mM]*\s*(?:[;}\n]|$)` +
		`|s,(?:[^,\\\n]|\\.)*,(?:[^,\\]|\\.|\\\n)*,[gpiI0-9mM]*\s*(?:[;}\n]|$)` +
		`|s@(?:[^@\\\n]|\\.)*@(?:[^@\\]|\\.|\\\n)*@[gpiI0-9mM]*\s*(?:[;}\n]|$)` +
		`|y/(?:[^/\\]|\\.)*/(?:[^/\\]|\\.)*/\s*(?:[;}\n]|$)` +
		`|[aic](?:[^\\\n]|\\.|\\\n)*(?:\n|$)` +
		`|\{|#[^\n]*(?:\n|$)` +
		`))*[\s;{}]*$`)
)

// sedOnlyEdits says whether a sed script is sure to do nothing but edit the text that passes through it.
func sedOnlyEdits(script string) bool { return sedCommands.MatchString(script) }

// awkReaches finds what in an awk program reaches beyond its input and output.
var awkReaches = regexp.MustCompile(`system|getline|@|(^|[^|])\|([^|]|$)|(?s:print.*>)|ENVIRON|PROCINFO|ARGV|close\s*\(`)

func (c *call) awk(ops []word, got optionsGiven) {
	if got.has("-f", "--file") {
		for _, o := range got.all {
			if o.name == "-f" || o.name == "--file" {
				c.script(o.value)
			}
		}
	} else if len(ops) > 0 {
		if !ops[0].known() || awkReaches.MatchString(ops[0].text) {
			c.high("a program that may run others, or read or write other files", doesExec)
		}
		ops = ops[1:]
	}
	for _, o := range ops {
		if name, _, ok := strings.Cut(o.text, "="); !ok || strings.ContainsAny(name, "/.") {
			c.touch(o, useRead)
		}
	}
}

func (c *call) dd(ops []word) {
	for _, o := range ops {
		switch name, _, _ := strings.Cut(o.text, "="); {
		case o.dynamic && len(o.lead) <= len(name):
			c.high("an operand that is only known when it runs", doesDynamic)
		case name == "of":
			c.touch(o.cut(len("of=")), useWrite)
		case name == "if":
			c.touch(o.cut(len("if=")), useRead)
		}
	}
}

// tar judges an archive by whether it is made, listed or unpacked.
func (c *call) tar(ops []word, got optionsGiven) {
	archive, named := got.values["-f"]
	if value, ok := got.values["--file"]; ok {
		archive, named = value, true
	}
	switch {
	case got.has("-c", "--create", "-r", "--append", "-u", "--update"):
		if named {
			c.touch(archive, useWrite)
		}
		c.touchAll(ops, useRead)
		return
	case got.has("-x", "--extract", "--get") && !got.has("-O", "--to-stdout"):
		c.touch(literal(".", c.at), useWrite)
	case !got.has("-t", "--list", "-x", "--extract", "--get"):
		c.high("neither makes, lists nor unpacks an archive")
	}
	if named {
		c.touch(archive, useRead)
	}
}

// oldTar turns tar's old form ("tar czf out src") into options, the archive's last so that it takes the next word.
func oldTar(args []word) []word {
	if len(args) == 0 || !args[0].known() || strings.HasPrefix(args[0].text, "-") {
		return args
	}
	letters := args[0].text
	if strings.Contains(letters, "f") {
		letters = strings.ReplaceAll(letters, "f", "") + "f"
	}
	return append([]word{literal("-"+letters, args[0].at)}, args[1:]...)
}

var (
	sqlReads  = regexp.MustCompile(`(?is)^\s*(select|show|explain|describe|desc|\\d\w*|\\l|\.tables|\.schema)\b`)
	sqlDoes   = regexp.MustCompile(`(?i)\b(into|insert|update|delete|drop|alter|create|truncate|grant|revoke|copy|call|do|merge|replace|attach|load|vacuum|analyze|set|lock|pg_\w+|lo_\w+|dblink\w*|load_file|writefile|readfile|load_extension|edit|sleep|nextval|setval|set_config)\b|\\[!oiwgc]`)
	sqlSecret = regexp.MustCompile(`(?i)password|secret|token|credential|pg_shadow|pg_authid`)
)

// sql judges the statements that are sent to a database.
func (c *call) sql(ops []word, got optionsGiven) {
	var statements []word
	for _, o := range got.all {
		switch o.name {
		case "-c", "--command", "-e", "--execute":
			statements = append(statements, o.value)
		case "-h", "--host":
			c.host(o.value.text)
		}
	}
	if c.name == "sqlite3" && len(ops) > 0 {
		c.touch(ops[0], useWrite)
		statements = append(statements, ops[1:]...)
	}
	if len(statements) == 0 {
		c.high("runs statements that it reads from a file or from its input", doesWrite, doesDynamic)
	}
	for _, s := range statements {
		text := strings.TrimRight(s.text, "; \n")
		switch {
		case !s.known() || strings.Contains(text, ";"):
			c.high("statements that are not analysed", doesWrite, doesDynamic)
		case !sqlReads.MatchString(text) || sqlDoes.MatchString(text):
			c.high("a statement that may change data", doesWrite)
		case sqlSecret.MatchString(text):
			c.high("a statement that may read credentials", doesSecret)
		}
	}
}

// urls judges addresses and what is sent to them.
func (c *call) urls(ops []word, got optionsGiven) {
	if len(ops) == 0 {
		c.high("no address is given in the command", doesDynamic)
	}
	for _, o := range ops {
		c.url(o)
	}
	for _, o := range got.all {
		switch o.name {
		case "-X", "--request":
			if o.value.text != "GET" && o.value.text != "HEAD" {
				c.high("sends "+o.value.text, doesPublish)
			}
		case "-H", "--header", "-A", "-e", "-w", "--write-out":
			if !o.value.known() || strings.Contains(o.value.text, "output{") || strings.HasPrefix(o.value.text, "@") || strings.HasPrefix(strings.ToLower(o.value.text), "authorization") {
				c.high("sends or writes with "+o.name+" what may be a secret or a file", doesSecret)
			}
		case "-O", "--remote-name":
			c.touch(literal(".", c.at), useWrite)
		}
	}
	if c.name == "wget" && !got.has("-O", "--output-document", "--spider") {
		c.touch(literal(".", c.at), useWrite)
	}
}

// inward finds addresses that are not of the public network.
var inward = regexp.MustCompile(`(?i)^(localhost|.*\.local|.*\.internal|.*\.localhost|metadata.*|[0-9.]+|0x[0-9a-f]+|\[.*)$`)

func (c *call) url(o word) {
	scheme, rest, ok := strings.Cut(o.text, "://")
	if !ok {
		scheme, rest = "https", o.text
	}
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	host := authority
	if i := strings.LastIndexByte(host, ':'); i > 0 && !strings.HasPrefix(host, "[") {
		host = host[:i]
	}
	switch {
	case !o.known() && len(o.lead) <= len(o.text)-len(rest)+len(authority):
		c.high("an address that is only known when it runs", doesNetwork, doesDynamic)
		return
	case o.dynamic:
		c.high("sends what is only known when it runs", doesNetwork, doesDynamic)
	case scheme != "https" && scheme != "http":
		c.high("an address of the scheme "+scheme, doesNetwork)
	case strings.Contains(authority, "@"):
		c.high("an address with credentials in it", doesSecret)
	case inward.MatchString(host):
		c.high("an address inside the network: "+host, doesNetwork)
	case len(path.Base(rest)) > 200:
		c.high("an address long enough to carry data out", doesPublish)
	}
	c.host(host)
}

func (c *call) host(name string) {
	if name != "" {
		c.w.hosts = append(c.w.hosts, strings.ToLower(name))
	}
}
