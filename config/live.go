package config

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"belay/agent"
	"belay/strictyaml"
)

// maxKept is how many bundles that were current a Live keeps by their digest, besides the one that is.
const maxKept = 16

// Live is the configuration of a running program. It follows its folder and keeps the last good bundle while the folder holds
// a bad one. It may be used from many goroutines.
type Live struct {
	fsys  fs.FS
	place Place
	kept  atomic.Pointer[[]*Bundle] // the current one first; never empty

	reload sync.Mutex
	seen   agent.Digest // of the folder that was last judged, good or bad
}

// Follow loads a folder as it holds in a place, and makes it the one to follow.
func Follow(fsys fs.FS, place Place) (*Live, error) {
	l := &Live{fsys: fsys, place: place}
	l.kept.Store(&[]*Bundle{})
	if err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

// Current gives the bundle that is in force now.
func (l *Live) Current() *Bundle { return (*l.kept.Load())[0] }

// At finds a bundle that is, or was earlier in this process, current.
func (l *Live) At(d agent.Digest) (*Bundle, bool) {
	for _, b := range *l.kept.Load() {
		if b.digest == d {
			return b, true
		}
	}
	return nil, false
}

// Reload reads the folder now. On an error the current bundle stays in force.
func (l *Live) Reload() error {
	l.reload.Lock()
	defer l.reload.Unlock()
	f, problems := readFolder(l.fsys)
	return l.take(f, problems)
}

// Run looks at the folder every interval until ctx ends, and reloads it when its content has changed. It calls report after
// each reload, so once for each change, good or bad; the bundle is the one in force then.
func (l *Live) Run(ctx context.Context, interval time.Duration, report func(*Bundle, error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if changed, err := l.poll(); changed {
			report(l.Current(), err)
		}
	}
}

func (l *Live) poll() (changed bool, err error) {
	l.reload.Lock()
	defer l.reload.Unlock()
	f, problems := readFolder(l.fsys)
	if judged(f, problems) == l.seen {
		return false, nil
	}
	return true, l.take(f, problems)
}

// judged names what was found in a folder, so that one state of it is judged once.
func judged(f folder, problems []*strictyaml.Problem) agent.Digest {
	found := string(f.digest())
	for _, p := range problems {
		found += "\n" + p.Error()
	}
	return digestOf([]byte(found))
}

// take judges what was read and, when it is good, puts it in force. The caller holds l.reload.
func (l *Live) take(f folder, problems []*strictyaml.Problem) error {
	l.seen = judged(f, problems)
	b, err := parse(f, problems)
	if err != nil {
		return err
	}
	if b, err = b.In(l.place); err != nil {
		return err
	}
	kept := []*Bundle{b}
	for _, old := range *l.kept.Load() {
		if old.digest != b.digest && len(kept) <= maxKept {
			kept = append(kept, old)
		}
	}
	l.kept.Store(&kept)
	return nil
}
