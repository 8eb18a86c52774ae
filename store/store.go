package store

import (
	"context"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"belay/agent"
)

// ErrNotFound means that the store has nothing of that name.
var ErrNotFound = errors.New("not in the store")

// Options tune a store; the zero value is what production uses. Stores of different options can share a bucket.
type Options struct {
	Interval     int   // turns between two packs of a conversation; 20
	CacheBytes   int64 // conversations kept in memory, in bytes of their JSON; 256 MiB
	MaxTreeBytes int64 // apparent size of one workspace, above which saving it is refused; 16 GiB
}

// Stats counts what a store has asked of its bucket since it was opened.
type Stats struct {
	Reads        int64 // objects read
	Probes       int64 // questions whether an object exists
	Writes       int64 // objects written
	BytesRead    int64 // as stored: compressed
	BytesWritten int64 // as stored: compressed
}

// Store is one bucket. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	local  string // folder of a local bucket, for creations that hold between processes
	opts   Options
	codec  *codec
	cache  *cache
	now    func() time.Time

	reads, probes, writes, bytesRead, bytesWritten atomic.Int64
}

// Open opens the bucket at location: a path or file:///path (made if it is not there), mem://, or the URL of any driver
// that is linked into the program (s3://, gs://, azblob://). A location that can't be understood is InvalidInput.
func Open(ctx context.Context, location string) (*Store, error) {
	return OpenWith(ctx, location, Options{})
}

// OpenWith is Open with options.
func OpenWith(ctx context.Context, location string, opts Options) (*Store, error) {
	if opts.Interval == 0 {
		opts.Interval = 20
	}
	if opts.CacheBytes == 0 {
		opts.CacheBytes = 256 << 20
	}
	if opts.MaxTreeBytes == 0 {
		opts.MaxTreeBytes = 16 << 30
	}
	if opts.Interval < 0 || opts.CacheBytes < 0 || opts.MaxTreeBytes < 0 {
		return nil, agent.Errorf(agent.InvalidInput, "store options: %+v; expected no negative value", opts)
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, codec: codec, cache: newCache(opts.CacheBytes), now: time.Now}
	if s.bucket, s.local, err = openBucket(ctx, location); err != nil {
		return nil, err
	}
	return s, nil
}

func openBucket(ctx context.Context, location string) (bucket *blob.Bucket, local string, err error) {
	scheme, rest, isURL := strings.Cut(location, "://")
	switch {
	case location == "":
		return nil, "", agent.Errorf(agent.InvalidInput, "store: no location; expected a folder, file:///folder, mem:// or a bucket's URL")
	case isURL && scheme == "mem" && rest == "":
		return memblob.OpenBucket(nil), "", nil
	case isURL && scheme != "file":
		if bucket, err = blob.OpenBucket(ctx, location); err != nil {
			return nil, "", agent.Errorf(agent.InvalidInput, "store %q: %w", location, err)
		}
		return bucket, "", nil
	case isURL:
		if location, err = filePath(location); err != nil {
			return nil, "", err
		}
	}
	if local, err = filepath.Abs(location); err != nil {
		return nil, "", agent.Errorf(agent.InvalidInput, "store %q: %w", location, err)
	}
	bucket, err = fileblob.OpenBucket(local, &fileblob.Options{
		CreateDir:   true,
		DirFileMode: 0o700, // it holds conversations and sources
		NoTempDir:   true,  // a rename must not cross file systems
		Metadata:    fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, "", agent.Errorf(agent.InvalidInput, "store %q: %w", location, err)
	}
	return bucket, local, nil
}

func filePath(location string) (string, error) {
	u, err := url.Parse(location)
	if err != nil || u.Host != "" || u.RawQuery != "" || u.Path == "" {
		return "", agent.Errorf(agent.InvalidInput, "store %q: expected file:///folder, without parameters", location)
	}
	if os.PathSeparator != '/' {
		return filepath.FromSlash(strings.TrimPrefix(u.Path, "/")), nil
	}
	return u.Path, nil
}

// Close lets go of the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// Stats tells what the store has asked of its bucket so far.
func (s *Store) Stats() Stats {
	return Stats{
		Reads:        s.reads.Load(),
		Probes:       s.probes.Load(),
		Writes:       s.writes.Load(),
		BytesRead:    s.bytesRead.Load(),
		BytesWritten: s.bytesWritten.Load(),
	}
}

// Tenant is one tenant's part of a store. It is safe for concurrent use.
type Tenant struct {
	store  *Store
	prefix string
}

var plainTenant = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)

// Tenant gives one tenant's part of the store. Every id has a part of its own, also one that no task could carry.
func (s *Store) Tenant(id agent.TenantID) *Tenant {
	name := string(id)
	if !plainTenant.MatchString(name) {
		name = "=" + hex.EncodeToString([]byte(id))
	}
	return &Tenant{store: s, prefix: "t/" + name + "/"}
}

// area is what a part of a tenant's keys holds.
type area string

const (
	areaContent area = "c/"
	areaPacks   area = "k/"
	areaTrees   area = "w/"
	areaRecords area = "r/"
)

// key is where an object named by a digest lies.
func (t *Tenant) key(a area, d agent.Digest) string {
	return t.prefix + string(a) + string(d[:2]) + "/" + string(d[2:])
}
