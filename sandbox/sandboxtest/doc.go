// Package sandboxtest holds what every sandbox.Runtime must pass, and a Fake that passes it without confining anything, for
// tests of what is built on sandboxes.
package sandboxtest
