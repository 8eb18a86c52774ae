package tool

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// maxDiff is how many bytes of a diff the model is shown: it wrote the change, and an intent remembers it.
const maxDiff = 8 << 10

// unified shows a change of a file as a unified diff with three lines around each place.
func unified(name string, before, after []byte) string {
	d := diff.Diff("a/"+name, before, "b/"+name, after)
	if _, rest, ok := bytes.Cut(d, []byte("\n")); ok { // the first line repeats the names
		d = rest
	}
	text, left := lineCut(visible(string(d)), maxDiff)
	if left > 0 {
		text += "… " + plural(left, "line") + " of the diff left out\n"
	}
	return text
}
