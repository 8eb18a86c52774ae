//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "belay-sandbox: sandboxes need Linux")
	os.Exit(1)
}
