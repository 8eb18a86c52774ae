//go:build linux

package wire

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"belay/sandbox/process/cgroup"
)

// patience is how long a killed process may take to be gone.
const patience = 10 * time.Second

// Reap ends every process that a supervisor, now dead, left in a sandbox, and waits until they are gone.
func Reap(dir string) error {
	var errs []error
	var g cgroup.Group
	if err := ReadFile(filepath.Join(dir, CgroupFile), &g); err == nil {
		errs = append(errs, g.Kill(patience))
	} else if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	boxes, err := os.ReadDir(filepath.Join(dir, BoxesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, box := range boxes {
		file := filepath.Join(dir, BoxesDir, box.Name())
		if filepath.Ext(file) != ".json" { // one that was not written to its end, before its box had a command
			errs = append(errs, os.Remove(file))
			continue
		}
		var p Process
		if err := ReadFile(file, &p); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := p.Kill(patience); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.Remove(file))
	}
	return errors.Join(errs...)
}
