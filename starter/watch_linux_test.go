package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A terminal of no size, as some CI systems give, is not drawn on.
func TestDrawable(t *testing.T) {
	t.Parallel()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer tty.Close()
	for _, tt := range []struct {
		rows, columns uint16
		want          bool
	}{{0, 0, false}, {0, 80, false}, {24, 80, true}} {
		if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: tt.rows, Col: tt.columns}); err != nil {
			t.Fatal(err)
		}
		if got := drawable(tty); got != tt.want || !terminal(tty) {
			t.Errorf("%d×%d: drawable is %v, want %v; terminal is %v, want true", tt.columns, tt.rows, got, tt.want, terminal(tty))
		}
	}
	if drawable(os.Stdin) && !terminal(os.Stdin) || drawable(nil) {
		t.Error("drawable without a terminal")
	}
}
