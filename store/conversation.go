package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"belay/agent"
)

// Conversation is what was said up to one head.
type Conversation struct {
	Head  agent.Digest
	Turns []agent.Turn // in order. Shared with the store: read only
}

const (
	// packGrowth is how much longer each next kind of pack is, and longestPack the longest, in intervals.
	packGrowth  = 8
	longestPack = 64
	// maxPack is how many bytes of turns a pack may hold; a shorter one is made instead.
	maxPack = 32 << 20
)

// Append stores a turn after the conversation that ends with head ("" starts one) and gives the new head. The same turn
// after the same head is the same head, so a retry changes nothing. Text that is not UTF-8 is stored as JSON has it, with
// U+FFFD for what is not.
func (t *Tenant) Append(ctx context.Context, head agent.Digest, turn agent.Turn) (agent.Digest, error) {
	base, err := t.load(ctx, head)
	if err != nil {
		return "", err
	}
	body, err := marshalTurn(turn)
	if err != nil {
		return "", err
	}
	if turn, err = unmarshalTurn(body); err != nil { // what a reader will get, and nothing of the caller's memory
		return "", err
	}
	if body, err = marshalTurn(turn); err != nil {
		return "", err
	}
	next, err := t.Put(ctx, encodeTurn(len(base.turns)+1, head, body))
	if err != nil {
		return "", err
	}
	grown := base.first(len(base.turns))
	grown.add(turn, next, len(body))
	if err := t.pack(ctx, &grown); err != nil {
		return "", err
	}
	t.store.cache.extend(t.prefix, base, turn, next, len(body))
	return next, nil
}

// Conversation gives the turns of the conversation that ends with head, in order; "" is the empty one. A conversation that
// this store has appended to or read lately needs no reads. A turn that is missing, damaged or out of order is a
// StateError.
func (t *Tenant) Conversation(ctx context.Context, head agent.Digest) (Conversation, error) {
	c, err := t.load(ctx, head)
	return Conversation{Head: head, Turns: c.turns}, err
}

// span is how many turns the pack after turn n repeats; 0: there is none.
func (s *Store) span(n int) int {
	span := s.opts.Interval
	if n == 0 || n%span != 0 {
		return 0
	}
	for span < s.opts.Interval*longestPack && n%(span*packGrowth) == 0 {
		span *= packGrowth
	}
	return span
}

// pack stores the pack that ends with the last turn of c, if there is to be one. A pack that is there is left as it is.
func (t *Tenant) pack(ctx context.Context, c *chain) error {
	n := len(c.turns)
	span := t.store.span(n)
	for span > t.store.opts.Interval && c.since(n-span) > maxPack {
		span /= packGrowth
	}
	if span == 0 || c.since(n-span) > maxPack {
		return nil
	}
	head, p := c.heads[n-1], turnPack{first: n - span + 1}
	if n > span {
		p.prev = c.heads[n-span-1]
	}
	for at, i := p.prev, n-span; i < n; i++ {
		body, err := marshalTurn(c.turns[i])
		if err != nil {
			return err
		}
		if at = turnHead(i+1, at, body); at != c.heads[i] {
			return nil // written by a version that spells turns differently: they stay readable one by one
		}
		p.bodies = append(p.bodies, body)
	}
	key, what := t.key(areaPacks, head), "conversation pack "+string(head)
	there, err := t.store.exists(ctx, key, what)
	if err == nil && !there {
		err = t.store.writeObject(ctx, key, what, p.encode())
	}
	if err != nil {
		return err
	}
	t.dropPacks(ctx, c.heads[:n], span)
	return nil
}

// dropPacks removes the shorter packs that a pack of the last span turns repeats. Whoever reads from one of their ends, a
// fork from an early checkpoint, reads the turns one by one up to the pack before.
func (t *Tenant) dropPacks(ctx context.Context, heads []agent.Digest, span int) {
	for n := len(heads); span > t.store.opts.Interval; {
		shorter := span / packGrowth
		for end := n - span + shorter; end < n; end += shorter {
			_ = t.store.bucket.Delete(ctx, t.key(areaPacks, heads[end-1])) // one that stays costs nothing but room
		}
		span = shorter
	}
}

// since gives the bytes of all turns after the first n.
func (c *chain) since(n int) int64 {
	if n == 0 {
		return c.ends[len(c.ends)-1]
	}
	return c.ends[len(c.ends)-1] - c.ends[n-1]
}

// load reads a conversation backwards, from the cache, from packs and from single turns, whichever comes first.
func (t *Tenant) load(ctx context.Context, head agent.Digest) (chain, error) {
	if head == "" {
		return chain{}, nil
	}
	if c, ok := t.store.cache.get(t.prefix, head); ok {
		return c, nil
	}
	r := chainReader{tenant: t, head: head, next: head}
	for !r.done {
		if err := r.step(ctx); err != nil {
			return chain{}, err
		}
	}
	c, err := r.chain()
	if err == nil {
		t.store.cache.put(t.prefix, c)
	}
	return c, err
}

// chainReader collects a conversation from its end to its start.
type chainReader struct {
	tenant *Tenant
	head   agent.Digest // of the whole, for errors
	next   agent.Digest // of what is still to be read
	n      int          // turns up to next; 0: not known yet
	done   bool

	before chain // what the cache had
	bodies [][]byte
	heads  []agent.Digest
}

func (r *chainReader) step(ctx context.Context) error {
	if c, ok := r.tenant.store.cache.get(r.tenant.prefix, r.next); ok {
		r.before, r.done = c, true
		return r.expect(len(c.turns))
	}
	if r.tenant.store.span(r.n) > 0 {
		if done, err := r.readPack(ctx); done || err != nil {
			return err
		}
	}
	content, err := r.tenant.Get(ctx, r.next)
	if err != nil {
		return r.broken(err)
	}
	n, prev, body, err := decodeTurn(content)
	if err != nil {
		return r.broken(err)
	}
	if r.n == 0 && r.tenant.store.span(n) > 0 { // the last turn, which has a pack
		r.n = n
		if done, err := r.readPack(ctx); done || err != nil {
			return err
		}
	}
	if err := r.expect(n); err != nil {
		return err
	}
	r.take(n, prev, [][]byte{body}, []agent.Digest{r.next})
	return nil
}

// readPack takes the pack that ends with next, and says whether there is one.
func (r *chainReader) readPack(ctx context.Context) (bool, error) {
	t := r.tenant
	content, err := t.store.readObject(ctx, t.key(areaPacks, r.next), "conversation pack "+string(r.next), MaxContent)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, r.broken(err)
	}
	p, heads, err := decodeTurnPack(content, r.next)
	if err != nil {
		return false, agent.Errorf(agent.StateError, "conversation %s: pack %s: %w", r.head, r.next, err)
	}
	if err := r.expect(p.first + len(p.bodies) - 1); err != nil {
		return false, err
	}
	r.take(p.first, p.prev, p.bodies, heads)
	return true, nil
}

// take files turns, of which the first is turn n and follows prev, before those that were taken.
func (r *chainReader) take(n int, prev agent.Digest, bodies [][]byte, heads []agent.Digest) {
	for i := len(bodies) - 1; i >= 0; i-- {
		r.bodies, r.heads = append(r.bodies, bodies[i]), append(r.heads, heads[i])
	}
	r.next, r.n, r.done = prev, n-1, n == 1
}

// expect checks that the turn that was found is the one that was due. Numbers only go down, so reading ends.
func (r *chainReader) expect(n int) error {
	if r.n != 0 && n != r.n {
		return r.broken(agent.Errorf(agent.StateError, "turn %s says it is number %d; expected %d", r.next, n, r.n))
	}
	return nil
}

func (r *chainReader) broken(err error) error {
	if errors.Is(err, errForm) {
		return agent.Errorf(agent.StateError, "conversation %s: turn %s: %w", r.head, r.next, err)
	}
	if kind := agent.TypeOf(err); kind != "" {
		return agent.Errorf(kind, "conversation %s: %w", r.head, err)
	}
	return fmt.Errorf("conversation %s: %w", r.head, err)
}

func (r *chainReader) chain() (chain, error) {
	c := r.before.first(len(r.before.turns))
	slices.Reverse(r.bodies)
	slices.Reverse(r.heads)
	for i, body := range r.bodies {
		turn, err := unmarshalTurn(body)
		if err != nil {
			return chain{}, agent.Errorf(agent.StateError, "conversation %s: turn %s: %w", r.head, r.heads[i], err)
		}
		c.add(turn, r.heads[i], len(body))
	}
	return c, nil
}
