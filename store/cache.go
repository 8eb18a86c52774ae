package store

import (
	"container/list"
	"slices"
	"sync"

	"belay/agent"
)

// chain is a conversation as it was read or built: its turns, the head after each, and the bytes of JSON up to each.
type chain struct {
	turns []agent.Turn
	heads []agent.Digest
	ends  []int64
}

func (c *chain) add(turn agent.Turn, head agent.Digest, size int) {
	before := int64(0)
	if n := len(c.ends); n > 0 {
		before = c.ends[n-1]
	}
	c.turns, c.heads, c.ends = append(c.turns, turn), append(c.heads, head), append(c.ends, before+int64(size))
}

// first gives a view of the first n turns, which an append to it can't change the chain through.
func (c *chain) first(n int) chain {
	return chain{turns: c.turns[:n:n], heads: c.heads[:n:n], ends: c.ends[:n:n]}
}

// turnOverhead is about what a turn takes in memory beside its JSON.
const turnOverhead = 512

func (c *chain) bytes() int64 {
	if len(c.ends) == 0 {
		return 0
	}
	return c.ends[len(c.ends)-1] + turnOverhead*int64(len(c.ends))
}

// cache keeps the conversations last used, up to a number of bytes. All heads of one lineage share its turns; a fork
// starts a lineage of its own. The least recently used lineage goes first.
type cache struct {
	limit int64

	mu     sync.Mutex
	used   int64
	byHead map[cacheKey]position
	recent *list.List // of *lineage, the last used in front
}

type cacheKey struct {
	tenant string // its prefix
	head   agent.Digest
}

type lineage struct {
	tenant string
	chain  chain
	place  *list.Element
}

// position is the conversation of the first n turns of a lineage.
type position struct {
	in *lineage
	n  int
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, byHead: map[cacheKey]position{}, recent: list.New()}
}

func (c *cache) get(tenant string, head agent.Digest) (chain, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.byHead[cacheKey{tenant, head}]
	if !ok {
		return chain{}, false
	}
	c.recent.MoveToFront(p.in.place)
	return p.in.chain.first(p.n), true
}

// put keeps a chain that was read.
func (c *cache) put(tenant string, ch chain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(ch.heads); n > 0 {
		if _, ok := c.byHead[cacheKey{tenant, ch.heads[n-1]}]; !ok {
			c.keep(tenant, ch)
		}
	}
}

// extend keeps a chain that is base with one turn more, in base's lineage where nothing follows base there yet.
func (c *cache) extend(tenant string, base chain, turn agent.Turn, head agent.Digest, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byHead[cacheKey{tenant, head}]; ok {
		return
	}
	n := len(base.turns)
	if n > 0 {
		p, ok := c.byHead[cacheKey{tenant, base.heads[n-1]}]
		if ok && p.n == len(p.in.chain.turns) {
			before := p.in.chain.bytes()
			p.in.chain.add(turn, head, size)
			c.byHead[cacheKey{tenant, head}] = position{p.in, n + 1}
			c.used += p.in.chain.bytes() - before
			c.recent.MoveToFront(p.in.place)
			c.trim()
			return
		}
	}
	forked := chain{turns: slices.Clone(base.turns), heads: slices.Clone(base.heads), ends: slices.Clone(base.ends)}
	forked.add(turn, head, size)
	c.keep(tenant, forked)
}

func (c *cache) keep(tenant string, ch chain) {
	l := &lineage{tenant: tenant, chain: ch}
	l.place = c.recent.PushFront(l)
	for i, head := range ch.heads {
		if _, ok := c.byHead[cacheKey{tenant, head}]; !ok {
			c.byHead[cacheKey{tenant, head}] = position{l, i + 1}
		}
	}
	c.used += ch.bytes()
	c.trim()
}

func (c *cache) trim() {
	for c.used > c.limit && c.recent.Len() > 0 {
		l := c.recent.Remove(c.recent.Back()).(*lineage)
		c.used -= l.chain.bytes()
		for _, head := range l.chain.heads {
			if key := (cacheKey{l.tenant, head}); c.byHead[key].in == l {
				delete(c.byHead, key)
			}
		}
	}
}
