package tool

import (
	"context"
	"fmt"
	"strings"

	"belay/agent"
	"belay/sandbox"
)

// normalised puts the output of a command into an observation: cleaned, cut to MaxText with its head and tail kept, and
// with a pointer to the whole where the sandbox spooled it.
func normalised(ctx context.Context, env Env, r sandbox.Result, o *agent.Observation) error {
	head, tail, left := r.Output, []byte(nil), r.Omitted
	if left > 0 {
		at := min(max(r.Head, 0), len(r.Output))
		head, tail = r.Output[:at], r.Output[at:]
		if r.Spool != "" {
			digest, size, err := env.Keep(ctx, r.Spool)
			if err != nil {
				return failure(err, "call %s: keep the output", env.Call)
			}
			o.Full, o.FullSize = digest, size
		}
	}
	o.Text = fitted(plain(head), plain(tail), left, o.Full)
	return nil
}

// fitted joins the head and the tail of an output so that both, what is said about the gap, and the
// last line take at most MaxText.
func fitted(head, tail string, left int64, full agent.Digest) string {
	const room = MaxText - 800 // the line about the gap, and the one that conclude adds
	if left == 0 && len(head) <= room {
		return head
	}
	if left == 0 {
		middle := boundary(head, len(head)/2)
		head, tail = head[:middle], head[middle:]
	}
	if len(head) > room/2 {
		at := boundary(head, room/2)
		left += int64(len(head) - at)
		head = head[:at]
	}
	if len(tail) > room/2 {
		at := boundary(tail, len(tail)-room/2)
		left += int64(at)
		tail = tail[at:]
	}
	pointer := ""
	if full != "" {
		pointer = "; full output kept as sha256:" + string(full)
	}
	return fmt.Sprintf("%s\n… %d bytes left out%s\n%s", strings.TrimSuffix(head, "\n"), left, pointer, tail)
}
