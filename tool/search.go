package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// Bounds of one search, beside maxFile, MaxText and walkTimeout. search_files.md says so.
const (
	maxSearched   = 50_000 // files
	maxMatchShown = 300    // bytes shown of one line
)

// search is one run over the files of a folder.
type search struct {
	query
	env Env

	lines                    strings.Builder
	matches, files, binary   int
	large, unread            int
	stopped, partial, tooBig bool // at most lines; not everything was walked; the text is full
}

// run searches the file or the folder that the query names.
func (s *search) run(ctx context.Context, root *os.Root) error {
	real, err := follow(root, s.abs)
	if err != nil {
		return err
	}
	info, err := exists(root, real)
	switch {
	case err != nil:
		return err
	case info == nil:
		return absent(root, s.env, real)
	case !info.IsDir():
		if err := regular(root, real, info); err != nil {
			return err
		}
		s.file(root, real)
		return nil
	}
	var failed error
	partial, err := walk(ctx, root, real, func(f found) (enter, stop bool) {
		if f.entry.IsDir() {
			return f.entry.Name() != ".git", false
		}
		if s.glob != nil && !s.glob.MatchString(strings.TrimPrefix(f.path, real+"/")) {
			return false, false
		}
		if failed = context.Cause(ctx); failed != nil {
			return false, true
		}
		s.entry(root, f)
		return false, s.done()
	})
	if err == nil {
		err = failed
	}
	s.partial = s.partial || partial
	return err
}

func (s *search) done() bool {
	s.partial = s.partial || s.files >= maxSearched
	return s.stopped || s.tooBig || s.files >= maxSearched
}

// entry searches one file of a folder. Links are left out: what they lead to has a path of its own.
func (s *search) entry(root *os.Root, f found) {
	if !f.entry.Type().IsRegular() {
		return
	}
	if info, err := root.Lstat(inRoot(f.path)); err == nil && info.Mode().IsRegular() && info.Size() > maxFile {
		s.large++
		return
	}
	s.file(root, f.path)
}

// file searches one file, line by line.
func (s *search) file(root *os.Root, abs string) {
	text, err := readText(root, abs)
	if err != nil {
		s.unread++
		return
	}
	s.files++
	if isBinary(text) {
		s.binary++
		return
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		at := s.pattern.FindIndex(line)
		if at == nil {
			continue
		}
		if s.stopped = s.matches == s.most; s.stopped {
			return
		}
		shown := fmt.Sprintf("%s:%d: %s\n", short(s.env.Dir, abs), n, around(line, at[0]))
		if s.tooBig = s.lines.Len()+len(shown) > MaxText-1000; s.tooBig { // what report adds
			return
		}
		s.matches++
		s.lines.WriteString(shown)
	}
}

func readText(root *os.Root, abs string) ([]byte, error) {
	f, _, err := openRegular(root, abs)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// around shows a line, or the part of it in which a match begins.
func around(line []byte, at int) string {
	s := string(line)
	if len(s) <= maxMatchShown {
		return visible(s)
	}
	from := 0
	if at > maxMatchShown/2 {
		from = boundary(s, at-maxMatchShown/3)
	}
	to := boundary(s, min(len(s), from+maxMatchShown))
	out := visible(s[from:to])
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}

// report is what was found, and what was not looked at.
func (s *search) report() string {
	sum := fmt.Sprintf("%s in %s searched", plural(s.matches, "matching line"), plural(s.files, "file"))
	for _, left := range []struct {
		n    int
		what string
	}{{s.binary, "binary"}, {s.large, "above 10 MiB"}, {s.unread, "not readable"}} {
		if left.n > 0 {
			sum += fmt.Sprintf("; %d %s left out", left.n, left.what)
		}
	}
	switch {
	case s.stopped:
		sum += fmt.Sprintf("; stopped at max_results %d: there is more", s.most)
	case s.tooBig:
		sum += "; stopped at 30 KiB of text: there is more"
	case s.partial:
		sum += "; not every folder or file was searched: name a smaller folder"
	}
	return s.lines.String() + sum + "\n"
}
