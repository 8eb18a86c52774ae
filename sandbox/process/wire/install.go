//go:build linux

package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Install writes a program that the worker embeds into a folder and gives its path there. The name has the program's digest
// in it: what an older worker left behind goes on with its own.
func Install(embedded fs.ReadFileFS, name, dir string) (string, error) {
	program, err := embedded.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("this worker was built without its program %s: run `make build`", path.Base(name))
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	file := filepath.Join(dir, path.Base(name)+"-"+hex.EncodeToString(sum[:8]))
	if st, err := os.Stat(file); err == nil && st.Size() == int64(len(program)) && st.Mode().Perm() == 0o755 {
		return file, nil
	}
	f, err := os.CreateTemp(dir, path.Base(name)+"-*.new")
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.Write(program)
	if err := errors.Join(err, f.Chmod(0o755), f.Close(), os.Rename(f.Name(), file)); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return file, nil
}
