// Package agent is Belay's vocabulary: the words that every other package uses for a task, its limits, the calls that
// a model asks for, what came of them, what people decide about them, and the record that remains.
//
// It holds data, its strict decoding and its validation, and nothing else: no I/O, no clock, no randomness, and no
// import beyond the standard library, so workflow code may use all of it.
package agent
