package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"

	"belay/agent"
)

// MaxContent is how much content Get and ReadTreeFile give at once; Open has no limit.
const MaxContent = 256 << 20

// sum is a SHA-256 as bytes, as the store's own structures hold it.
type sum [sha256.Size]byte

func (s sum) digest() agent.Digest { return agent.Digest(hex.EncodeToString(s[:])) }

func parseSum(d agent.Digest) (s sum, err error) {
	if !d.Valid() {
		return s, agent.Errorf(agent.InvalidInput, "digest %q: expected 64 lower-case hex digits", d)
	}
	_, err = hex.Decode(s[:], []byte(d))
	return s, err
}

func contentName(d agent.Digest) string { return "content " + string(d) }

// Put stores content, if it is not there yet, and gives its digest.
func (t *Tenant) Put(ctx context.Context, content []byte) (agent.Digest, error) {
	d := sum(sha256.Sum256(content)).digest()
	there, err := t.store.exists(ctx, t.key(areaContent, d), contentName(d))
	if err != nil || there {
		return d, err
	}
	return d, t.store.writeObject(ctx, t.key(areaContent, d), contentName(d), content)
}

// PutFrom stores all that r gives, in bounded memory: what is large goes through a temporary file, since its name is only
// known at its end. It also gives the number of bytes that it read. An error of r is returned as it is.
func (t *Tenant) PutFrom(ctx context.Context, r io.Reader) (agent.Digest, int64, error) {
	var sp spool
	defer sp.close()
	digest, size, err := sealInto(&sp, ctxReader{ctx, r})
	if err != nil {
		return "", size, err
	}
	what, key := contentName(digest), t.key(areaContent, digest)
	there, err := t.store.exists(ctx, key, what)
	if err != nil || there {
		return digest, size, err
	}
	sealed, err := sp.reader()
	if err != nil {
		return "", size, err
	}
	err = t.store.bucket.Upload(ctx, key, sealed, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return "", size, bucketError(ctx, what, err)
	}
	t.store.writes.Add(1)
	t.store.bytesWritten.Add(sp.size)
	return digest, size, nil
}

// sealInto writes the object that holds what r gives to w.
func sealInto(w io.Writer, r io.Reader) (agent.Digest, int64, error) {
	crc := crc32.New(castagnoli)
	z, err := newEncoder(io.MultiWriter(w, crc))
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err := io.Copy(io.MultiWriter(h, encoderOnly{z}), r)
	if err != nil {
		z.Close()
		return "", size, err
	}
	if err := z.Close(); err != nil {
		return "", size, err
	}
	_, err = w.Write(binary.BigEndian.AppendUint32(nil, crc.Sum32()))
	return agent.Digest(hex.EncodeToString(h.Sum(nil))), size, err
}

// encoderOnly hides the encoder's ReadFrom, which would take the content past the hash.
type encoderOnly struct{ z *zstd.Encoder }

func (e encoderOnly) Write(p []byte) (int, error) { return e.z.Write(p) }

// ctxReader stops when its context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// Get gives content of at most MaxContent bytes; larger content is ResourceExhausted.
func (t *Tenant) Get(ctx context.Context, d agent.Digest) ([]byte, error) {
	return t.get(ctx, d, MaxContent)
}

func (t *Tenant) get(ctx context.Context, d agent.Digest, limit int64) ([]byte, error) {
	r, err := t.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readLimited(r, contentName(d), limit)
}

// Open gives content as a stream. It is verified at its end: only when Read has given io.EOF is what came before it what
// was stored; content that was damaged ends in a StateError instead.
func (t *Tenant) Open(ctx context.Context, d agent.Digest) (io.ReadCloser, error) {
	if _, err := parseSum(d); err != nil {
		return nil, err
	}
	o, err := t.store.openObject(ctx, t.key(areaContent, d), contentName(d))
	if err != nil {
		return nil, err
	}
	return &verified{object: o, want: d, hash: sha256.New()}, nil
}

type verified struct {
	*object
	want agent.Digest
	hash hash.Hash
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.object.Read(p)
	v.hash.Write(p[:n])
	if err == io.EOF { //nolint:errorlint // a reader's end is io.EOF itself
		if got := agent.Digest(hex.EncodeToString(v.hash.Sum(nil))); got != v.want {
			return n, agent.Errorf(agent.StateError, "%s: damaged in the store: its content has digest %s", v.what, got)
		}
	}
	return n, err
}
