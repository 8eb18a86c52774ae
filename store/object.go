package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"belay/agent"
)

// An object is a zstd frame and the CRC-32C of the frame, big-endian: every flipped byte is found, also one that would
// leave the content as it was.
const trailerSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamaged = errors.New("damaged in the store: its checksum does not match")

// codec compresses and decompresses. Windows are small, so that a reader needs a bounded few MiB whatever was stored.
type codec struct {
	whole    *zstd.Encoder // for EncodeAll only, which is safe for concurrent use
	decoders sync.Pool
}

const window = 4 << 20

func newEncoder(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
}

func newCodec() (*codec, error) {
	whole, err := newEncoder(nil)
	return &codec{whole: whole}, err
}

func (c *codec) decoder(r io.Reader) (*zstd.Decoder, error) {
	if d, ok := c.decoders.Get().(*zstd.Decoder); ok {
		return d, d.Reset(r)
	}
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
}

func (c *codec) seal(content []byte) []byte {
	frame := c.whole.EncodeAll(content, make([]byte, 0, len(content)/2+64))
	return binary.BigEndian.AppendUint32(frame, crc32.Checksum(frame, castagnoli))
}

// unsealer gives the frame of an object and an error instead of the end when the frame is not what was written.
type unsealer struct {
	in  *bufio.Reader
	crc uint32
	// failed is an error of the bucket, as opposed to one of the data.
	failed error
}

func (u *unsealer) Read(p []byte) (int, error) {
	ahead, err := u.in.Peek(trailerSize + 1)
	if len(ahead) <= trailerSize {
		if !errors.Is(err, io.EOF) {
			u.failed = err
			return 0, err
		}
		if len(ahead) < trailerSize || binary.BigEndian.Uint32(ahead) != u.crc {
			return 0, errDamaged
		}
		return 0, io.EOF
	}
	n, err := u.in.Read(p[:min(len(p), u.in.Buffered()-trailerSize)])
	u.crc = crc32.Update(u.crc, castagnoli, p[:n])
	return n, err
}

// object reads the content of one object.
type object struct {
	what  string // for errors: "content 0123…"
	codec *codec
	blob  *blob.Reader
	frame *unsealer
	zstd  *zstd.Decoder
}

// openObject starts to read the object at key. What comes is not to be trusted before io.EOF.
func (s *Store) openObject(ctx context.Context, key, what string) (*object, error) {
	s.reads.Add(1)
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, bucketError(ctx, what, err)
	}
	s.bytesRead.Add(r.Size())
	frame := &unsealer{in: bufio.NewReaderSize(r, 64<<10)}
	d, err := s.codec.decoder(frame)
	if err != nil {
		r.Close()
		return nil, agent.Errorf(agent.StateError, "%s: %w", what, err)
	}
	return &object{what: what, codec: s.codec, blob: r, frame: frame, zstd: d}, nil
}

func (o *object) Read(p []byte) (int, error) {
	n, err := o.zstd.Read(p)
	switch {
	case err == nil || err == io.EOF: //nolint:errorlint // a reader's end is io.EOF itself
		return n, err
	case o.frame.failed != nil:
		return n, bucketError(context.Background(), o.what, o.frame.failed)
	case errors.Is(err, errDamaged):
		return n, agent.Errorf(agent.StateError, "%s: %w", o.what, err)
	}
	return n, agent.Errorf(agent.StateError, "%s: damaged in the store: %w", o.what, err)
}

func (o *object) Close() error {
	if o.zstd != nil {
		if o.zstd.Reset(nil) == nil {
			o.codec.decoders.Put(o.zstd)
		}
		o.zstd = nil
	}
	return o.blob.Close()
}

// readObject gives the content of the object at key, of at most limit bytes.
func (s *Store) readObject(ctx context.Context, key, what string, limit int64) ([]byte, error) {
	o, err := s.openObject(ctx, key, what)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return readLimited(o, what, limit)
}

func readLimited(r io.Reader, what string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, agent.Errorf(agent.ResourceExhausted, "%s: larger than the %d bytes that may be read at once", what, limit)
	}
	return b.Bytes(), nil
}

// writeObject seals content and writes it at key, in place of what is there.
func (s *Store) writeObject(ctx context.Context, key, what string, content []byte) error {
	return s.write(ctx, key, what, s.codec.seal(content), &blob.WriterOptions{})
}

func (s *Store) write(ctx context.Context, key, what string, sealed []byte, opts *blob.WriterOptions) error {
	opts.ContentType = "application/octet-stream"
	if err := s.bucket.WriteAll(ctx, key, sealed, opts); err != nil {
		return bucketError(ctx, what, err)
	}
	s.writes.Add(1)
	s.bytesWritten.Add(int64(len(sealed)))
	return nil
}

func (s *Store) exists(ctx context.Context, key, what string) (bool, error) {
	s.probes.Add(1)
	ok, err := s.bucket.Exists(ctx, key)
	if err != nil {
		return false, bucketError(ctx, what, err)
	}
	return ok, nil
}

// bucketError sorts an error of the bucket into its category.
func bucketError(ctx context.Context, what string, err error) error {
	code := gcerrors.Code(err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case code == gcerrors.NotFound:
		return agent.Errorf(agent.StateError, "%s: %w", what, ErrNotFound)
	case code == gcerrors.PermissionDenied:
		return agent.Errorf(agent.Unauthorized, "%s: %w", what, err)
	case errors.Is(err, syscall.ENOSPC), code == gcerrors.ResourceExhausted:
		return agent.Errorf(agent.ResourceExhausted, "%s: %w", what, err)
	}
	return agent.Errorf(agent.NetworkError, "%s: %w", what, err)
}

// hostError gives an error of the host's files a category, unless it has one or is a context's end: what the host has no
// room for is ResourceExhausted, everything else is of the kind that is otherwise.
func hostError(otherwise agent.ErrorType, what string, err error) error {
	switch kind := agent.TypeOf(err); {
	case kind != "":
		return agent.Errorf(kind, "%s: %w", what, err)
	case ctxDone(err):
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return agent.Errorf(agent.ResourceExhausted, "%s: %w", what, err)
	}
	return agent.Errorf(otherwise, "%s: %w", what, err)
}

// ctxDone says whether an error is that a context was cancelled or ran out.
func ctxDone(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
