//go:build linux

package main

import (
	"errors"
	"io"
	"os"

	"belay/sandbox"
)

// output keeps what a command writes, in bounded memory: all of it up to keep bytes; beyond that the first and the last
// half, and everything up to max bytes in a file.
type output struct {
	keep    int
	max     int64
	path    string // of the file, made when it is needed
	head    []byte
	tail    []byte // up to twice as long as it has to be
	total   int64
	gap     bool     // output is beyond keep
	spool   *os.File // nil: none could be made
	spooled int64
}

// drain reads until nobody holds the other end, whatever becomes of what it reads.
func (o *output) drain(r io.Reader) error {
	var failed error
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if werr := o.write(buf[:n]); werr != nil {
			failed = errors.Join(failed, werr)
			o.max = o.spooled // the file is as long as it gets
		}
		if err == io.EOF {
			return failed
		}
		if err != nil {
			return errors.Join(failed, err)
		}
	}
}

func (o *output) write(p []byte) error {
	o.total += int64(len(p))
	if o.total <= int64(o.keep) {
		o.head = append(o.head, p...)
		return nil
	}
	half := o.keep / 2
	var err error
	if !o.gap {
		o.gap = true
		if o.spool, err = os.OpenFile(o.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
			o.spool = nil
		}
		err = errors.Join(err, o.store(o.head))
		if len(o.head) > half {
			o.tail = append(o.tail, o.head[half:]...)
			o.head = o.head[:half:half]
		}
	}
	err = errors.Join(err, o.store(p))
	if room := half - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head, p = append(o.head, p[:n]...), p[n:]
	}
	size := o.keep - half
	o.tail = append(o.tail, p...)
	if len(o.tail) > 2*size {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-size:]...)
	}
	return err
}

func (o *output) store(p []byte) error {
	p = p[:min(int64(len(p)), o.max-o.spooled)]
	if len(p) == 0 || o.spool == nil {
		return nil
	}
	n, err := o.spool.Write(p)
	o.spooled += int64(n)
	return err
}

// finish fills in what a result says about the output; spool is the file's name for others.
func (o *output) finish(r *sandbox.Result, spool string) error {
	r.Total, r.Output = o.total, o.head
	if !o.gap {
		return nil
	}
	tail := o.tail[max(0, len(o.tail)-(o.keep-o.keep/2)):]
	r.Head = len(o.head)
	r.Output = append(o.head, tail...)
	r.Omitted = o.total - int64(len(r.Output))
	if o.spool == nil {
		return nil
	}
	r.Spool = spool
	return errors.Join(o.spool.Sync(), o.spool.Close())
}
