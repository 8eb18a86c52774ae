package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/agent"
)

func TestRecords(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"mem://", t.TempDir()} {
		_, tenant := openAt(t, location, Options{})
		ctx := t.Context()
		if _, err := tenant.Record(ctx, "runs/1"); !errors.Is(err, ErrNotFound) || agent.TypeOf(err) != agent.StateError {
			t.Errorf("absent: got %v; want ErrNotFound as a StateError", err)
		}
		for _, name := range []string{"runs/1", "runs/1/model/m3", "runs/10", "x.attrs", "runs/1/model"} {
			must(0, tenant.PutRecord(ctx, name, []byte("old")))
			must(0, tenant.PutRecord(ctx, name, []byte("value of "+name)))
			if got := must(tenant.Record(ctx, name)); string(got) != "value of "+name {
				t.Errorf("%s: got %q", name, got)
			}
		}
		for prefix, want := range map[string][]string{
			"":         {"runs/1", "runs/1/model", "runs/1/model/m3", "runs/10", "x.attrs"},
			"runs/1":   {"runs/1", "runs/1/model", "runs/1/model/m3", "runs/10"},
			"runs/1/":  {"runs/1/model", "runs/1/model/m3"},
			"nothing/": nil,
		} {
			if diff := cmp.Diff(want, must(tenant.Records(ctx, prefix))); diff != "" {
				t.Errorf("Records(%q): %s", prefix, diff)
			}
		}
	}
}

func TestCreateRecord(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"mem://", t.TempDir()} {
		s, tenant := openAt(t, location, Options{})
		tenants := []*Tenant{tenant}
		if location != "mem://" { // another process on the same folder
			_, twin := openAt(t, location, Options{})
			tenants = append(tenants, twin)
		}
		var wins atomic.Int32
		var winner atomic.Value
		seen := make([]string, 32)
		var wg sync.WaitGroup
		for i := range seen {
			wg.Go(func() {
				mine := fmt.Sprint("writer ", i)
				got, created, err := tenants[i%len(tenants)].CreateRecord(t.Context(), "runs/1/model/m1", []byte(mine))
				switch {
				case err != nil:
					t.Error(err)
				case created:
					wins.Add(1)
					winner.Store(mine)
					seen[i] = mine
				default:
					seen[i] = string(got)
				}
			})
		}
		wg.Wait()
		for i, got := range seen {
			if wins.Load() != 1 || got != winner.Load() {
				t.Errorf("writer %d got %q of %d winners", i, got, wins.Load())
			}
		}
		if keys := s.objects(t, ""); len(keys) != 1 {
			t.Errorf("%v in the bucket; want the record only", keys)
		}
	}
}

func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	must(0, tenant.PutRecord(t.Context(), "runs/1/a", []byte(strings.Repeat("value ", 30))))
	must(0, tenant.PutRecord(t.Context(), "runs/1/b", []byte("another")))
	key := must(tenant.recordKey("runs/1/a"))
	all := damages(s.raw(t, key))
	all["another record in its place"] = s.raw(t, must(tenant.recordKey("runs/1/b")))
	for how, raw := range all {
		s.setRaw(t, key, raw)
		if _, err := tenant.Record(t.Context(), "runs/1/a"); agent.TypeOf(err) != agent.StateError || !strings.Contains(err.Error(), "runs/1/a") {
			t.Errorf("%s: got %v; want a StateError that names the record", how, err)
		}
	}
}

func TestRecordNames(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	for _, name := range []string{"", "/a", "a/", "a//b", "..", "a/../b", ".hidden", "a b", "a!", "a\x00", "ü", strings.Repeat("a", 201), strings.Repeat("a/", 400) + "a"} {
		for what, err := range map[string]error{
			"put":    tenant.PutRecord(t.Context(), name, nil),
			"create": ignore(tenant.CreateRecord(t.Context(), name, nil)),
			"get":    second(tenant.Record(t.Context(), name)),
		} {
			if agent.TypeOf(err) != agent.InvalidInput {
				t.Errorf("%s %q: got %v; want InvalidInput", what, name, err)
			}
		}
	}
	if err := tenant.PutRecord(t.Context(), "large", make([]byte, maxRecord+1)); agent.TypeOf(err) != agent.InvalidInput {
		t.Errorf("large: got %v; want InvalidInput", err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add("a", must(encodeRecord("a", []byte("value"))))
	f.Add("b", []byte("short"))
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		value, err := decodeRecord(name, raw)
		if err == nil && string(must(encodeRecord(name, value))) != string(raw) {
			t.Errorf("%q decodes to %q, which is another record", raw, value)
		}
	})
}
