// Package testserver starts the real thing for tests and benchmarks: a Temporal dev server with Belay's settings, and
// Belay's own programs as processes that a test may kill. Nothing in the product imports it.
package testserver
