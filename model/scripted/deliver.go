package scripted

import (
	"encoding/json"
	"net/http"
)

// delivery sends one answer, with its fault.
type delivery struct {
	w          http.ResponseWriter
	r          *http.Request
	fault      Fault // the zero value is none
	answer     answer
	of         completion // what all chunks have in common
	usage      *Usage
	usageChunk bool
	stream     bool
}

// send sends the answer and gives how it ended.
func (d delivery) send() end {
	f := d.fault
	if !wait(d.r, f.FirstDelay) {
		return endGone
	}
	if f.Status != 0 {
		for name, value := range f.Headers {
			d.w.Header().Set(name, value)
		}
		writeJSON(d.w, f.Status, f.refusal())
		return endFaulted
	}
	if !d.stream {
		return d.sendWhole()
	}
	return d.sendStream()
}

func (f Fault) refusal() refusal {
	message, kind := f.Message, "server_error"
	if message == "" {
		message = "scripted fault"
	}
	switch {
	case f.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case f.Status >= 400 && f.Status < 500:
		kind = "invalid_request_error"
	}
	return newRefusal(message, kind, f.Code, "")
}

func (d delivery) sendWhole() end {
	switch f := d.fault; {
	case f.StallAfter != nil:
		<-d.r.Context().Done()
		return endGone
	case f.CutAfter != nil:
		return endCut
	case f.ErrorAfter != nil:
		writeJSON(d.w, http.StatusInternalServerError, f.refusal())
		return endFaulted
	}
	whole := d.answer.whole(d.of)
	if d.usage != nil {
		whole.Usage = d.usage.wire()
	}
	writeJSON(d.w, http.StatusOK, whole)
	return endAnswered
}

func (d delivery) sendStream() end {
	f := d.fault
	piece := f.ChunkBytes
	if piece == 0 {
		piece = defaultPiece
	}
	chunks := d.answer.chunks(d.of, piece)
	if d.usageChunk {
		last := d.of
		last.Object = "chat.completion.chunk"
		last.Usage = d.usage.wire()
		chunks = append(chunks, last)
	}
	for i := 0; ; i++ {
		if f.ends(i, len(chunks)) {
			return d.endEarly()
		}
		if i == len(chunks) {
			break
		}
		if !wait(d.r, f.ChunkDelay) || !d.event(chunks[i]) {
			return endGone
		}
	}
	if _, err := d.w.Write([]byte("data: [DONE]\n\n")); err != nil {
		return endGone
	}
	return endAnswered
}

// ends tells whether the fault strikes after i of n chunks; at the latest when all are sent.
func (f Fault) ends(i, n int) bool {
	for _, after := range []*int{f.StallAfter, f.CutAfter, f.ErrorAfter} {
		if after != nil && i >= min(*after, n) {
			return true
		}
	}
	return false
}

func (d delivery) endEarly() end {
	switch {
	case d.fault.StallAfter != nil:
		<-d.r.Context().Done()
		return endGone
	case d.fault.CutAfter != nil:
		return endCut
	}
	if !d.event(d.fault.refusal()) {
		return endGone
	}
	return endFaulted
}

// event sends one event of a stream; the first sends the header too. It tells whether the client is still there.
func (d delivery) event(v any) bool {
	b, err := json.Marshal(v)
	if err != nil {
		return false // all events are plain structs
	}
	d.w.Header().Set("Content-Type", "text/event-stream")
	if _, err := d.w.Write([]byte("data: " + string(b) + "\n\n")); err != nil {
		return false
	}
	return http.NewResponseController(d.w).Flush() == nil
}
