package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"belay/agent"
)

// maxRecord is how large a record may be, in bytes.
const maxRecord = 16 << 20

// recordEnd ends the key of every record. Names can't hold it, so one record's name may be another's folder, and a local
// bucket's temporary files are never taken for records.
const recordEnd = "!"

// A name is folders and a leaf; a segment is never "." or "..", and short enough for a file name.
var recordForm = regexp.MustCompile(`^[A-Za-z0-9_@=,+-][A-Za-z0-9._@=,+-]{0,199}(/[A-Za-z0-9_@=,+-][A-Za-z0-9._@=,+-]{0,199})*$`)

func (t *Tenant) recordKey(name string) (string, error) {
	if len(name) > 700 || !recordForm.MatchString(name) {
		return "", agent.Errorf(agent.InvalidInput,
			"record name %q: expected segments of A-Z a-z 0-9 . _ @ = , + - with / between them, none that starts with a dot", name)
	}
	return t.prefix + string(areaRecords) + name + recordEnd, nil
}

// PutRecord stores a value under a name, in place of the one that is there.
func (t *Tenant) PutRecord(ctx context.Context, name string, value []byte) error {
	key, err := t.recordKey(name)
	if err != nil {
		return err
	}
	content, err := encodeRecord(name, value)
	if err != nil {
		return err
	}
	return t.store.writeObject(ctx, key, "record "+name, content)
}

// CreateRecord stores a value under a name that has none yet. Of several writers the first wins: the others get its value,
// and created is false. It is atomic, between processes too, wherever the bucket can do that.
func (t *Tenant) CreateRecord(ctx context.Context, name string, value []byte) (existing []byte, created bool, err error) {
	key, err := t.recordKey(name)
	if err != nil {
		return nil, false, err
	}
	content, err := encodeRecord(name, value)
	if err != nil {
		return nil, false, err
	}
	created, err = t.store.create(ctx, key, "record "+name, content)
	if err != nil || created {
		return nil, created, err
	}
	existing, err = t.Record(ctx, name)
	return existing, false, err
}

// Record gives the value stored under a name.
func (t *Tenant) Record(ctx context.Context, name string) ([]byte, error) {
	key, err := t.recordKey(name)
	if err != nil {
		return nil, err
	}
	content, err := t.store.readObject(ctx, key, "record "+name, maxRecord+sha256.Size)
	if err != nil {
		return nil, err
	}
	return decodeRecord(name, content)
}

// Records gives the names that start with prefix, sorted.
func (t *Tenant) Records(ctx context.Context, prefix string) ([]string, error) {
	base := t.prefix + string(areaRecords)
	if strings.Contains(prefix, "..") || strings.HasPrefix(prefix, "/") {
		return nil, agent.Errorf(agent.InvalidInput, "record prefix %q: expected the start of a record's name", prefix)
	}
	var names []string
	for it := t.store.bucket.List(&blob.ListOptions{Prefix: base + prefix}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, bucketError(ctx, "records "+prefix, err)
		}
		if name, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, base), recordEnd); ok {
			names = append(names, name)
		}
	}
}

// A record is the digest of its name and value, and the value: one that lies under another's name is found out.
func encodeRecord(name string, value []byte) ([]byte, error) {
	if len(value) > maxRecord {
		return nil, agent.Errorf(agent.InvalidInput, "record %s: %d bytes; expected at most %d", name, len(value), maxRecord)
	}
	check := recordSum(name, value)
	return append(check[:], value...), nil
}

func decodeRecord(name string, content []byte) ([]byte, error) {
	if len(content) >= sha256.Size {
		if value := content[sha256.Size:]; recordSum(name, value) == sum(content[:sha256.Size]) {
			return value, nil
		}
	}
	return nil, agent.Errorf(agent.StateError, "record %s: %w", name, errDamaged)
}

func recordSum(name string, value []byte) sum {
	h := sha256.New()
	h.Write([]byte(name + "\x00"))
	h.Write(value)
	return sum(h.Sum(nil))
}

// create writes an object that must not be there yet, and says whether it did.
func (s *Store) create(ctx context.Context, key, what string, content []byte) (bool, error) {
	sealed := s.codec.seal(content)
	if s.local != "" {
		created, err := createFile(filepath.Join(s.local, filepath.FromSlash(key)), sealed)
		switch {
		case err == nil && created:
			s.writes.Add(1)
			s.bytesWritten.Add(int64(len(sealed)))
			return true, nil
		case err == nil:
			return false, nil
		case !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission):
			return false, bucketError(ctx, what, err)
		} // a file system without hard links
	}
	err := s.write(ctx, key, what, sealed, &blob.WriterOptions{IfNotExist: true})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return false, nil
	}
	return err == nil, err
}

// createFile makes a file whole or not at all, and only if there is none. The bucket's own creation holds within one
// process only.
func createFile(path string, data []byte) (bool, error) {
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	f, err := os.CreateTemp(dir, strings.TrimSuffix(name, recordEnd)+".*.tmp")
	if err != nil {
		return false, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	err = os.Link(f.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}
