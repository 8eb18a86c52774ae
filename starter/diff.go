package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) diffVerb() *cobra.Command {
	var runID string
	var stat bool
	cmd := &cobra.Command{
		Use:   "diff <id>",
		Short: "Show what a task changed in its workspace, as a patch",
		Long: "diff shows what a task changed in its workspace, up to its last checkpoint, as a patch that \"git apply\" takes. It reads the\n" +
			"store (BELAY_STORE) and works for tasks that run, that have ended, and that the server has forgotten.",
		Example:           "  belay diff fix-calc | git apply\n  belay diff fix-calc --stat",
		Args:              takes("<id>"),
		ValidArgsFunction: c.completeTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			return c.diff(cmd.Context(), s, args[0], runID, stat)
		},
	}
	cmd.Flags().StringVar(&runID, "run-id", "", "run, where the id was used several times; default: the last")
	cmd.Flags().BoolVar(&stat, "stat", false, "only how many lines of which files changed")
	return cmd
}

func (c *cli) diff(ctx context.Context, s *session, id, runID string, stat bool) error {
	found, err := s.tasks.Find(ctx, id, runID)
	if err != nil {
		return err
	}
	if s.absent != nil {
		return s.absent
	}
	var p checkpoints
	for e, err := range s.tasks.Read(ctx, found) {
		if err != nil {
			return err
		}
		p.see(e)
	}
	if p.base == "" {
		return fmt.Errorf("task %q has no checkpoint yet", id)
	}
	patch, err := s.store.Tenant(found.Run.Tenant).Diff(ctx, p.base, p.tree)
	if err != nil {
		return fmt.Errorf("diff of %s (BELAY_STORE): %w", id, err)
	}
	switch {
	case c.asJSON && stat:
		return c.object(map[string]any{"base": p.base, "tree": p.tree, "files": stats(patch)})
	case c.asJSON:
		return c.object(map[string]any{"base": p.base, "tree": p.tree, "patch": string(patch)})
	case stat:
		return c.showStats(stats(patch))
	case terminal(c.stdout):
		patch = []byte(clean(string(patch)))
	}
	_, err = c.stdout.Write(patch)
	return err
}

// fileStat is how much of one file changed.
type fileStat struct {
	File    string `json:"file"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}

// stats counts the changed lines of a patch by file.
func stats(patch []byte) []fileStat {
	files := []fileStat{}
	inHunk := false
	for l := range bytes.Lines(patch) {
		switch {
		case bytes.HasPrefix(l, []byte("diff --git ")):
			files = append(files, fileStat{File: nameIn(l)})
			inHunk = false
		case len(files) == 0:
		case bytes.HasPrefix(l, []byte("@@ ")):
			inHunk = true
		case bytes.HasPrefix(l, []byte("GIT binary patch")):
			files[len(files)-1].Binary = true
		case inHunk && l[0] == '+':
			files[len(files)-1].Added++
		case inHunk && l[0] == '-':
			files[len(files)-1].Removed++
		}
	}
	return files
}

// nameIn is the file that a patch's "diff --git a/x b/x" is about. Both names are the same, so the line's halves are equally
// long.
func nameIn(header []byte) string {
	both := bytes.TrimSpace(bytes.TrimPrefix(header, []byte("diff --git ")))
	half := string(both[len(both)/2+1:])
	if len(half) > 2 && half[0] == '"' {
		return half[:1] + half[3:] // quoted, as git quotes odd names
	}
	return half[min(2, len(half)):]
}

func (c *cli) showStats(files []fileStat) error {
	var b bytes.Buffer
	added, removed := 0, 0
	for _, f := range files {
		what := fmt.Sprintf("+%d\t-%d", f.Added, f.Removed)
		if f.Binary {
			what = "binary\t"
		}
		fmt.Fprintf(&b, "%s\t%s\n", clean(f.File), what)
		added, removed = added+f.Added, removed+f.Removed
	}
	fmt.Fprintf(&b, "%d files\t+%d\t-%d\n", len(files), added, removed)
	_, err := fmt.Fprint(c.stdout, aligned(b.String()))
	return err
}
