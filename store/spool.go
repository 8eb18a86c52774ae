package store

import (
	"bytes"
	"io"
	"os"
)

// spoolMemory is how much a spool holds in memory before it uses a file.
const spoolMemory = 1 << 20

// spool keeps what is written to it until it is read back.
type spool struct {
	memory bytes.Buffer
	file   *os.File
	size   int64
}

func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if s.file == nil && s.memory.Len()+len(p) <= spoolMemory {
		return s.memory.Write(p)
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "belay-spool-*")
		if err != nil {
			return 0, err
		}
		s.file = f
		if _, err := f.Write(s.memory.Bytes()); err != nil {
			return 0, err
		}
		s.memory = bytes.Buffer{}
	}
	return s.file.Write(p)
}

func (s *spool) reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), nil
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}
