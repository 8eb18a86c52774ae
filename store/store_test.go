package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"

	"belay/agent"
)

// open gives a store in memory and the part of it of tenant acme. Its clock is far ahead of the file system's, so every
// file counts as at rest when it is read.
func open(t *testing.T) (*Store, *Tenant) {
	t.Helper()
	return openAt(t, "mem://", Options{})
}

func openAt(t *testing.T, location string, opts Options) (*Store, *Tenant) {
	t.Helper()
	s, err := OpenWith(t.Context(), location, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	return s, s.Tenant("acme")
}

// objects gives the keys in the bucket that start with prefix.
func (s *Store) objects(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return keys
		}
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
}

func (s *Store) raw(t *testing.T, key string) []byte {
	t.Helper()
	b, err := s.bucket.ReadAll(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *Store) setRaw(t *testing.T, key string, b []byte) {
	t.Helper()
	if err := s.bucket.WriteAll(t.Context(), key, b, nil); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wantStateError checks that err is a StateError that names name.
func wantStateError(t *testing.T, err error, name string) {
	t.Helper()
	if agent.TypeOf(err) != agent.StateError || !strings.Contains(err.Error(), name) {
		t.Errorf("got error %v (%s); want a StateError that names %s", err, agent.TypeOf(err), name)
	}
}

// damages gives every way to damage an object that a test can name: one byte flipped, cut short, lengthened.
func damages(raw []byte) map[string][]byte {
	all := map[string][]byte{"lengthened": append(bytes.Clone(raw), 0), "empty": {}}
	for i := range raw {
		b := bytes.Clone(raw)
		b[i] ^= 1 << (i % 8)
		all[fmt.Sprintf("byte %d flipped", i)] = b
		all[fmt.Sprintf("cut to %d", i)] = raw[:i]
	}
	return all
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, location := range []string{"mem://", filepath.Join(dir, "a", "b"), "file://" + filepath.Join(dir, "c")} {
		s, tenant := openAt(t, location, Options{})
		d := must(tenant.Put(t.Context(), []byte("x")))
		if got := must(tenant.Get(t.Context(), d)); string(got) != "x" {
			t.Errorf("%s: got %q", location, got)
		}
		if keys := s.objects(t, ""); len(keys) != 1 {
			t.Errorf("%s: bucket holds %v; want one object and no other files", location, keys)
		}
	}
	for location, want := range map[string]string{
		"":                "expected a folder",
		"nope://bucket":   "nope",
		"file://host/dir": "expected file:///folder",
		"file:///d?x=1":   "without parameters",
	} {
		if _, err := Open(t.Context(), location); agent.TypeOf(err) != agent.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): got %v; want InvalidInput with %q", location, err, want)
		}
	}
	if _, err := OpenWith(t.Context(), "mem://", Options{Interval: -1}); agent.TypeOf(err) != agent.InvalidInput {
		t.Errorf("negative interval: got %v", err)
	}
}

func TestLocalStoreIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	_, tenant := openAt(t, dir, Options{})
	must(tenant.Put(t.Context(), []byte("x")))
	must(0, tenant.PutRecord(t.Context(), "a/b", nil))
	for _, p := range []string{dir, filepath.Join(dir, "t"), filepath.Join(dir, "t/acme/r/a")} {
		if mode := must(os.Stat(p)).Mode().Perm(); mode != 0o700 {
			t.Errorf("%s has mode %v; want 0700", p, mode)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	for name, content := range map[string][]byte{
		"empty": {}, "short": []byte("hello"), "zeros": make([]byte, 5<<20), "noise": noise,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, tenant := openAt(t, t.TempDir(), Options{})
			d := must(tenant.Put(t.Context(), content))
			if d != sumOf(content) {
				t.Fatalf("digest %s; want the SHA-256 of the content", d)
			}
			if got, err := tenant.Get(t.Context(), d); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("got %d bytes, %v; want what was put", len(got), err)
			}
			writes := s.Stats().Writes
			d2, n, err := tenant.PutFrom(t.Context(), bytes.NewReader(content))
			if err != nil || d2 != d || n != int64(len(content)) || s.Stats().Writes != writes {
				t.Fatalf("PutFrom: %s, %d, %v, %d writes; want the same digest and no write", d2, n, err, s.Stats().Writes-writes)
			}
			s2, other := open(t)
			must(0, ignore(other.PutFrom(t.Context(), bytes.NewReader(content))))
			if got, err := other.Get(t.Context(), d); err != nil || !bytes.Equal(got, content) || s2.Stats().Writes != 1 {
				t.Fatalf("after PutFrom: got %d bytes, %v", len(got), err)
			}
		})
	}
}

func ignore[A, B any](_ A, _ B, err error) error { return err }

func sumOf(b []byte) agent.Digest {
	s := sum(sha256.Sum256(b))
	return s.digest()
}

func TestMissingContent(t *testing.T) {
	t.Parallel()
	_, tenant := open(t)
	d := sumOf([]byte("never stored"))
	_, err := tenant.Get(t.Context(), d)
	wantStateError(t, err, string(d))
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v; want ErrNotFound in it", err)
	}
	for _, bad := range []agent.Digest{"", "abc", "../../../../etc/passwd", agent.Digest(strings.Repeat("A", 64))} {
		if _, err := tenant.Get(t.Context(), bad); agent.TypeOf(err) != agent.InvalidInput {
			t.Errorf("Get(%q): got %v; want InvalidInput", bad, err)
		}
	}
}

func TestDamagedContent(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	d := must(tenant.Put(t.Context(), []byte(strings.Repeat("some content that compresses; ", 20))))
	key := tenant.key(areaContent, d)
	for how, raw := range damages(s.raw(t, key)) {
		s.setRaw(t, key, raw)
		_, err := tenant.Get(t.Context(), d)
		if agent.TypeOf(err) != agent.StateError || !strings.Contains(err.Error(), string(d)) {
			t.Errorf("%s: got %v; want a StateError that names the digest", how, err)
		}
	}
	s.setRaw(t, key, s.codec.seal([]byte("well formed, but something else")))
	_, err := tenant.Get(t.Context(), d)
	wantStateError(t, err, string(d))
	r := must(tenant.Open(t.Context(), d))
	defer r.Close()
	_, err = io.ReadAll(r)
	wantStateError(t, err, string(d))
}

func TestContentTooLargeToGet(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	const size = 20 << 20
	d, n, err := tenant.PutFrom(t.Context(), io.LimitReader(zeros{}, size))
	if err != nil || n != size {
		t.Fatal(n, err)
	}
	if stored := s.Stats().BytesWritten; stored > 64<<10 {
		t.Fatalf("zeros take %d bytes in the store", stored)
	}
	if _, err := tenant.get(t.Context(), d, size-1); agent.TypeOf(err) != agent.ResourceExhausted {
		t.Errorf("a bomb: got %v; want ResourceExhausted", err)
	}
	if got, err := tenant.get(t.Context(), d, size); err != nil || len(got) != size {
		t.Errorf("as large as allowed: %d bytes, %v", len(got), err)
	}
	r := must(tenant.Open(t.Context(), d))
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err != nil || n != size {
		t.Errorf("Open: %d bytes, %v; want all of it", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestPutFromStopsWithItsReaderAndContext(t *testing.T) {
	t.Parallel()
	s, tenant := open(t)
	broken := errors.New("broken")
	_, _, err := tenant.PutFrom(t.Context(), io.MultiReader(strings.NewReader("x"), failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("got %v; want the reader's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := tenant.PutFrom(ctx, zeros{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want the context's error", err)
	}
	if keys := s.objects(t, ""); len(keys) != 0 {
		t.Errorf("%v was left behind", keys)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	s, acme := openAt(t, t.TempDir(), Options{})
	content := must(acme.Put(t.Context(), []byte("secret")))
	head := must(acme.Append(t.Context(), "", says("secret")))
	must(0, acme.PutRecord(t.Context(), "r", []byte("secret")))
	root := must(os.OpenRoot(t.TempDir()))
	defer root.Close()
	must(0, root.WriteFile("f", []byte("secret"), 0o600))
	tree := must(acme.SaveTree(t.Context(), root, "")).Tree
	for _, id := range []agent.TenantID{"other", "", "acme/c", "../acme", "ACME", "=61636d65"} {
		other := s.Tenant(id)
		for what, err := range map[string]error{
			"content":      second(other.Get(t.Context(), content)),
			"conversation": second(other.Conversation(t.Context(), head)),
			"record":       second(other.Record(t.Context(), "r")),
			"tree":         second(other.ListTree(t.Context(), tree)),
		} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("tenant %q reads acme's %s: %v", id, what, err)
			}
		}
		if names, err := other.Records(t.Context(), ""); err != nil || len(names) > 0 {
			t.Errorf("tenant %q lists %v, %v", id, names, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestConcurrentPuts(t *testing.T) {
	t.Parallel()
	_, tenant := openAt(t, t.TempDir(), Options{})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			content := []byte(strings.Repeat(fmt.Sprint(i%5), 10_000))
			d, err := tenant.Put(t.Context(), content)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := tenant.Get(t.Context(), d); err != nil || !bytes.Equal(got, content) {
				t.Error(i, err)
			}
		})
	}
	wg.Wait()
}
