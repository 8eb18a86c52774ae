package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

// says is a turn with one message.
func says(text string) agent.Turn {
	return agent.Turn{Messages: []agent.Message{{Role: agent.RoleUser, Text: text}}}
}

// build appends n turns of the given text and gives the head after each; heads[0] is "".
func build(t *testing.T, tenant *Tenant, n int, text func(i int) agent.Turn) []agent.Digest {
	t.Helper()
	heads := []agent.Digest{""}
	for i := range n {
		heads = append(heads, must(tenant.Append(t.Context(), heads[i], text(i))))
	}
	return heads
}

func numbered(i int) agent.Turn { return says(fmt.Sprint("turn ", i)) }

// cold gives the tenant of a store on the same bucket that has read nothing yet.
func (s *Store) cold(tenant *Tenant) (*Store, *Tenant) {
	c := &Store{bucket: s.bucket, local: s.local, opts: s.opts, codec: s.codec, cache: newCache(s.opts.CacheBytes), now: s.now}
	return c, &Tenant{store: c, prefix: tenant.prefix}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	s, tenant := openAt(t, "mem://", Options{Interval: 3})
	heads := build(t, tenant, 80, numbered)
	for n, head := range heads {
		var want []agent.Turn
		for i := range n {
			want = append(want, numbered(i))
		}
		_, fresh := s.cold(tenant)
		for how, from := range map[string]*Tenant{"warm": tenant, "cold": fresh} {
			got, err := from.Conversation(t.Context(), head)
			if err != nil || got.Head != head {
				t.Fatalf("%s, %d turns: %v", how, n, err)
			}
			if diff := cmp.Diff(want, got.Turns); diff != "" {
				t.Fatalf("%s, %d turns: %s", how, n, diff)
			}
		}
	}
}

func TestAppendIsRepeatable(t *testing.T) {
	t.Parallel()
	s, tenant := openAt(t, "mem://", Options{Interval: 2})
	heads := build(t, tenant, 7, numbered)
	writes := s.Stats().Writes
	_, fresh := s.cold(tenant)
	if diff := cmp.Diff(heads, build(t, fresh, 7, numbered)); diff != "" {
		t.Error(diff)
	}
	build(t, tenant, 7, numbered)
	if got := s.Stats().Writes + fresh.store.Stats().Writes; got != writes {
		t.Errorf("repeating wrote %d objects", got-writes)
	}
	_, other := openAt(t, "mem://", Options{Interval: 5})
	if diff := cmp.Diff(heads, build(t, other, 7, numbered)); diff != "" {
		t.Errorf("heads depend on the interval: %s", diff)
	}
}

// What a reader gets is the same whether the turn comes from memory or from the bucket, and nothing that the caller does
// to what it passed changes it.
func TestAppendedTurnIsWhatIsRead(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	turn := agent.Turn{Messages: []agent.Message{
		{Role: agent.RoleAssistant, Text: "not UTF-8: \xff <&>\u2028", Calls: []agent.ToolCall{{ID: "c1", Tool: "shell", Arguments: "{not json"}}},
		{Role: agent.RoleTool, Call: "c1"},
	}}
	head := must(tenant.Append(t.Context(), "", turn))
	turn.Messages[0].Calls[0].Tool = "changed by the caller"
	_, fresh := s.cold(tenant)
	warm, cold := must(tenant.Conversation(t.Context(), head)), must(fresh.Conversation(t.Context(), head))
	if diff := cmp.Diff(warm, cold); diff != "" {
		t.Error(diff)
	}
	if got := cold.Turns[0].Messages[0]; got.Calls[0].Tool != "shell" || got.Text != "not UTF-8: \ufffd <&>\u2028" {
		t.Errorf("got %+v", got)
	}
}

func TestForksShareAndDoNotMix(t *testing.T) {
	t.Parallel()
	_, tenant := openAt(t, "mem://", Options{Interval: 4})
	heads := build(t, tenant, 30, numbered)
	var wg sync.WaitGroup
	for fork := range 20 {
		wg.Go(func() {
			at := fork + 5
			head := heads[at]
			for i := range 10 {
				next, err := tenant.Append(t.Context(), head, says(fmt.Sprint("fork ", fork, " ", i)))
				if err != nil {
					t.Error(err)
					return
				}
				head = next
			}
			c, err := tenant.Conversation(t.Context(), head)
			if err != nil || len(c.Turns) != at+10 {
				t.Error(len(c.Turns), err)
				return
			}
			for i, turn := range c.Turns {
				want := numbered(i)
				if i >= at {
					want = says(fmt.Sprint("fork ", fork, " ", i-at))
				}
				if !cmp.Equal(want, turn) {
					t.Errorf("fork %d, turn %d: got %v", fork, i, turn)
				}
			}
		})
	}
	wg.Wait()
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	s, tenant := openAt(t, "mem://", Options{CacheBytes: 100_000})
	var last []agent.Digest
	for c := range 10 {
		last = build(t, tenant, 10, func(i int) agent.Turn { return says(fmt.Sprint(c, i, strings.Repeat("x", 2000))) })
		if s.cache.used > 100_000 || s.cache.used < 0 {
			t.Fatalf("cache holds %d bytes", s.cache.used)
		}
	}
	if n := len(s.cache.byHead); n > 40 || n < 10 {
		t.Errorf("cache knows %d heads; want only those of the last few conversations", n)
	}
	reads := s.Stats().Reads
	if c := must(tenant.Conversation(t.Context(), last[10])); len(c.Turns) != 10 || s.Stats().Reads != reads {
		t.Errorf("the last conversation took %d reads", s.Stats().Reads-reads)
	}
	huge := says(strings.Repeat("y", 200_000))
	head := must(tenant.Append(t.Context(), "", huge))
	if c := must(tenant.Conversation(t.Context(), head)); len(c.Turns) != 1 || s.cache.used > 100_000 {
		t.Errorf("a conversation larger than the cache: %d turns, %d bytes cached", len(c.Turns), s.cache.used)
	}
}

// observation is a turn as a run has it: a call, and 4 KiB of what a test run or a listing prints.
func observation(i int) agent.Turn {
	rnd := rand.New(rand.NewPCG(uint64(i), 7))
	words := []string{"ok", "FAIL", "belay/store", "belay/agent", "panic:", "expected", "got", "func", "return", "error", "nil", "github.com/x/y", "line", "TestRestore", "cached"}
	var b strings.Builder
	for b.Len() < 4<<10 {
		fmt.Fprintf(&b, "%s:%d: %s %s %x\n", words[rnd.IntN(len(words))], rnd.IntN(900), words[rnd.IntN(len(words))], words[rnd.IntN(len(words))], rnd.Uint32())
	}
	id := agent.NewCallID(i + 1)
	return agent.Turn{Messages: []agent.Message{
		{Role: agent.RoleTool, Call: id, Text: b.String()[:4<<10]},
		{Role: agent.RoleAssistant, Text: "Let me look at the next file.", Calls: []agent.ToolCall{{ID: id, Tool: "shell", Arguments: fmt.Sprintf(`{"command":"go test ./pkg%d/..."}`, i)}}},
	}}
}

func TestConversationCost(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	var size int64
	head := agent.Digest("")
	for i := range 5000 {
		reads := s.Stats().Reads
		if c := must(tenant.Conversation(t.Context(), head)); len(c.Turns) != i {
			t.Fatalf("%d turns; want %d", len(c.Turns), i)
		}
		turn := observation(i)
		head = must(tenant.Append(t.Context(), head, turn))
		size += int64(len(must(marshalTurn(turn))))
		if got := s.Stats().Reads - reads; got > 0 {
			t.Fatalf("turn %d: %d reads to load what this process appended, and append to it", i, got)
		}
		limit, ok := map[int]int64{20: 2, 25: 7, 400: 7, 5000: 13}[i+1]
		if !ok {
			continue
		}
		fresh, other := s.cold(tenant)
		if c := must(other.Conversation(t.Context(), head)); len(c.Turns) != i+1 {
			t.Fatalf("cold: %d turns; want %d", len(c.Turns), i+1)
		}
		ratio := float64(s.Stats().BytesWritten) / float64(size)
		t.Logf("%d turns: %d bytes of JSON, %d in the store (%.2f), %d reads when cold", i+1, size, s.Stats().BytesWritten, ratio, fresh.Stats().Reads)
		if fresh.Stats().Reads > limit {
			t.Errorf("%d turns: %d reads when cold; want at most %d", i+1, fresh.Stats().Reads, limit)
		}
		if ratio > 1.2 {
			t.Errorf("%d turns: the store holds %.2f times the conversation; want at most 1.2", i+1, ratio)
		}
	}
}

func TestPacksAreOptional(t *testing.T) {
	t.Parallel()
	s, tenant := openAt(t, "mem://", Options{Interval: 2})
	heads := build(t, tenant, 40, numbered)
	for _, key := range s.objects(t, tenant.prefix+string(areaPacks)) {
		must(0, s.bucket.Delete(t.Context(), key))
	}
	_, fresh := s.cold(tenant)
	if c := must(fresh.Conversation(t.Context(), heads[40])); len(c.Turns) != 40 {
		t.Errorf("got %d turns", len(c.Turns))
	}
	fresh.store.opts.Interval = 7 // a worker of another setting
	more := must(fresh.Append(t.Context(), heads[40], says("more")))
	if c := must(tenant.Conversation(t.Context(), more)); len(c.Turns) != 41 {
		t.Errorf("got %d turns", len(c.Turns))
	}
}

func TestALongPackTakesThePlaceOfShortOnes(t *testing.T) {
	t.Parallel()
	s, tenant := openAt(t, "mem://", Options{Interval: 2})
	for _, c := range []struct{ turns, packs int }{{14, 7}, {16, 1}, {22, 4}, {128, 1}} {
		heads := build(t, tenant, c.turns, numbered)
		if n := len(s.objects(t, tenant.prefix+string(areaPacks))); n != c.packs {
			t.Errorf("%d turns: %d packs, want %d", c.turns, n, c.packs)
		}
		_, fresh := s.cold(tenant)
		if got := must(fresh.Conversation(t.Context(), heads[c.turns/2+1])); len(got.Turns) != c.turns/2+1 {
			t.Errorf("from the middle of %d turns: %d", c.turns, len(got.Turns))
		}
	}
}

func TestBrokenChain(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, tenant *Tenant, n int, prev agent.Digest, body string) agent.Digest {
		return must(tenant.Put(t.Context(), encodeTurn(n, prev, []byte(body))))
	}
	const body = `{"messages":null}`
	for name, broken := range map[string]func(t *testing.T, tenant *Tenant) (head agent.Digest, names agent.Digest){
		"turn missing": func(t *testing.T, tenant *Tenant) (agent.Digest, agent.Digest) {
			gone := sumOf([]byte("gone"))
			return put(t, tenant, 2, gone, body), gone
		},
		"number skipped": func(t *testing.T, tenant *Tenant) (agent.Digest, agent.Digest) {
			first := put(t, tenant, 1, "", body)
			return put(t, tenant, 3, first, body), first
		},
		"numbers that never end": func(t *testing.T, tenant *Tenant) (agent.Digest, agent.Digest) {
			a := put(t, tenant, 5, sumOf([]byte("x")), body)
			return put(t, tenant, 5, a, body), a
		},
		"not a turn": func(t *testing.T, tenant *Tenant) (agent.Digest, agent.Digest) {
			d := must(tenant.Put(t.Context(), []byte("a file")))
			return d, d
		},
		"not JSON": func(t *testing.T, tenant *Tenant) (agent.Digest, agent.Digest) {
			d := put(t, tenant, 1, "", "{")
			return d, d
		},
		"head missing": func(t *testing.T, tenant *Tenant) (agent.Digest, agent.Digest) {
			return sumOf([]byte("gone")), sumOf([]byte("gone"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, tenant := open(t)
			head, names := broken(t, tenant)
			_, err := tenant.Conversation(t.Context(), head)
			wantStateError(t, err, string(head))
			wantStateError(t, err, string(names))
			_, err = tenant.Append(t.Context(), head, says("more"))
			wantStateError(t, err, string(head))
			if missing := strings.Contains(name, "missing"); errors.Is(err, ErrNotFound) != missing {
				t.Errorf("ErrNotFound in %v: want %v", err, missing)
			}
		})
	}
}

func TestDamagedConversation(t *testing.T) {
	t.Parallel()
	s, tenant := openAt(t, "mem://", Options{Interval: 2})
	heads := build(t, tenant, 5, numbered)
	for _, key := range []string{tenant.key(areaContent, heads[5]), tenant.key(areaPacks, heads[4])} {
		whole := s.raw(t, key)
		all := damages(whole)
		all["another pack in its place"] = s.raw(t, tenant.key(areaPacks, heads[2]))
		for how, raw := range all {
			s.setRaw(t, key, raw)
			_, fresh := s.cold(tenant)
			if _, err := fresh.Conversation(t.Context(), heads[5]); agent.TypeOf(err) != agent.StateError || !strings.Contains(err.Error(), string(heads[5])) {
				t.Errorf("%s: got %v; want a StateError that names the head", how, err)
			}
		}
		s.setRaw(t, key, whole)
	}
}

func FuzzDecodeTurn(f *testing.F) {
	f.Add(encodeTurn(1, "", must(marshalTurn(numbered(1)))))
	f.Add(encodeTurn(12, sumOf(nil), must(marshalTurn(observation(1)))))
	f.Add([]byte("belay turn 01 -\n{}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		n, prev, body, err := decodeTurn(content)
		if err != nil {
			return
		}
		if string(encodeTurn(n, prev, body)) != string(content) {
			t.Error("not the only spelling")
		}
		turn, err := unmarshalTurn(body)
		if err != nil {
			return
		}
		again := must(marshalTurn(turn))
		if second := must(marshalTurn(must(unmarshalTurn(again)))); string(second) != string(again) {
			t.Errorf("%s becomes %s when it is read and written", again, second)
		}
	})
}

func FuzzDecodeTurnPack(f *testing.F) {
	one, two := []byte("{}"), []byte(`{"messages":null}`)
	p := turnPack{first: 1, bodies: [][]byte{one, two}}
	f.Add(p.encode(), string(turnHead(2, turnHead(1, "", one), two)))
	p = turnPack{first: 3, prev: sumOf(nil), bodies: [][]byte{one}}
	f.Add(p.encode(), string(turnHead(3, sumOf(nil), one)))
	f.Add(p.encode(), "")
	f.Fuzz(func(t *testing.T, content []byte, head string) {
		p, heads, err := decodeTurnPack(content, agent.Digest(head))
		if err != nil {
			return
		}
		at := p.prev
		for i, body := range p.bodies {
			if at = turnHead(p.first+i, at, body); at != heads[i] {
				t.Errorf("turn %d: head %s; want %s", p.first+i, heads[i], at)
			}
		}
		if at != agent.Digest(head) {
			t.Errorf("ends with %s; want %s", at, head)
		}
	})
}
