package scripted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"belay/agent"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 64 << 20

// defaultPiece is how many bytes of text a chunk carries.
const defaultPiece = 32

// Server answers Chat Completions requests, for every scenario by its name. It serves POST /v1/chat/completions, GET
// /v1/models and GET /_scripted/requests, which gives what Requests gives.
type Server struct {
	scenarios map[string]*Scenario
	counts    counter
	mux       *http.ServeMux
}

// New makes a server of scenarios with different names.
func New(scenarios ...*Scenario) *Server {
	s := &Server{scenarios: map[string]*Scenario{}, mux: http.NewServeMux()}
	for _, sc := range scenarios {
		s.scenarios[sc.Name] = sc
	}
	s.mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /_scripted/requests", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"requests": s.Requests()})
	})
	return s
}

// Requests tells how many requests each turn of each conversation took, in the order in which they first came.
func (s *Server) Requests() []Count { return s.counts.list() }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) names() []string { return slices.Sorted(maps.Keys(s.scenarios)) }

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	data := []entry{}
	for _, name := range s.names() {
		data = append(data, entry{ID: "scripted/" + name, Object: "model", OwnedBy: "scripted"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// complete answers one request.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	var req request
	var fields map[string]json.RawMessage
	raw := http.MaxBytesReader(w, r.Body, maxRequest)
	if err := decode(raw, &fields, &req); err != nil {
		refuse(w, http.StatusBadRequest, err.Error(), "", "")
		return
	}
	sc, found := s.scenarios[strings.TrimPrefix(req.Model, "scripted/")]
	if !found {
		refuse(w, http.StatusNotFound, fmt.Sprintf("no scenario %.80q; there are %s", req.Model, strings.Join(s.names(), ", ")), "model_not_found", "model")
		return
	}
	for _, field := range sc.Unsupported {
		if _, given := fields[field]; given {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model.", field), "unsupported_parameter", field)
			return
		}
	}
	if err := req.check(); err != nil {
		refuse(w, http.StatusBadRequest, err.Error(), "", "messages")
		return
	}
	s.answer(w, r, req, sc)
}

// answer gives the answer of the first rule that matches, or its fault, and counts it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, req request, sc *Scenario) {
	c := read(req)
	i := sc.rule(c)
	if i < 0 {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("scenario %s: no rule matches turn %d (last result: %.200q)", sc.Name, c.Turn, c.LastTool), "no_rule", "")
		return
	}
	rule := sc.Rules[i]
	a, err := rule.answer(c)
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("scenario %s, %s: %v", sc.Name, rule.Name, err), "template", "")
		return
	}
	state := digest(req.Messages)
	key := turn{scenario: sc.Name, conversation: digest([]string{c.System, c.Goal})[:12], number: c.Turn}
	fault := s.counts.begin(key, c.Goal, rule, fmt.Sprintf("%s/%d/%s", sc.Name, i, state))
	out := delivery{
		w: w, r: r, fault: fault, answer: a, stream: req.Stream,
		of: completion{ID: "chatcmpl-" + state[:12], Model: req.Model, Choices: []choice{}},
	}
	if !sc.OmitUsage {
		u := sc.cost(req, a)
		out.usage = &u
		out.usageChunk = req.StreamOptions.IncludeUsage
	}
	end := out.send()
	s.counts.end(key, end)
	if end == endCut {
		panic(http.ErrAbortHandler) // net/http's way to cut a connection; it logs nothing
	}
}

// decode reads a body twice: for its fields and for what they hold.
func decode(body interface{ Read([]byte) (int, error) }, fields *map[string]json.RawMessage, req *request) error {
	var raw json.RawMessage
	if err := json.NewDecoder(body).Decode(&raw); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	if err := json.Unmarshal(raw, fields); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	return json.Unmarshal(raw, req)
}

// digest names a value by its content.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return strings.Repeat("0", 64) // only called on texts and messages, which have a JSON form
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func refuse(w http.ResponseWriter, status int, message, code, param string) {
	writeJSON(w, status, newRefusal(message, "invalid_request_error", code, param))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}

// wait lets time pass, unless the client leaves first.
func wait(r *http.Request, d agent.Duration) (stayed bool) {
	if d <= 0 {
		return r.Context().Err() == nil
	}
	t := time.NewTimer(time.Duration(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
