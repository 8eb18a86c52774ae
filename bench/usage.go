package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is processor time: of this process, of the Temporal server, and of everything else on the machine.
type usage struct {
	worker, server, others time.Duration
	at                     time.Time
}

func (u usage) since(v usage) usage {
	return usage{worker: u.worker - v.worker, server: u.server - v.server, others: u.others - v.others, at: u.at}
}

func (u usage) ours() time.Duration { return u.worker + u.server }

// tick is the unit of processor time in /proc.
const tick = 10 * time.Millisecond

// usage reads the processor time from /proc, which only Linux has.
func (r *rig) usage() (u usage, err error) {
	if u.worker, err = processTime("self"); err != nil {
		return u, err
	}
	if u.server, err = processTime(strconv.Itoa(r.server.PID())); err != nil {
		return u, err
	}
	all, err := fields("/proc/stat", 0)
	if err != nil {
		return u, err
	}
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user nice system irq softirq steal
		u.others += all.ticks(i)
	}
	u.others -= u.ours()
	u.at = time.Now()
	return u, nil
}

func processTime(pid string) (time.Duration, error) {
	f, err := fields("/proc/"+pid+"/stat", 0)
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may hold blanks: count from the end of it. utime and stime are the 14th and 15th.
	end := 0
	for i, w := range f {
		if bytes.HasSuffix(w, []byte(")")) {
			end = i
		}
	}
	return f.ticks(end+12) + f.ticks(end+13), nil
}

// words are the words of one line of a file in /proc.
type words [][]byte

func fields(path string, line int) (words, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("processor time, which is known on Linux only: %w", err)
	}
	return bytes.Fields(bytes.Split(b, []byte("\n"))[line]), nil
}

func (w words) ticks(i int) time.Duration { return time.Duration(w.number(i)) * tick }

// number is the i-th word as a number; the kernel's own files hold nothing else there.
func (w words) number(i int) int64 {
	if i >= len(w) {
		return 0
	}
	n, err := strconv.ParseInt(string(w[i]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	f, err := fields("/proc/thread-self/schedstat", 0)
	if err != nil {
		return 0
	}
	return time.Duration(f.number(0))
}
