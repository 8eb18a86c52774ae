// Package events reads what happened in a task back as a list of events. Nothing is logged twice: the events of a run are a
// projection of its Temporal history, and of what was sealed of it before the history could be deleted.
//
// The same history gives the same events, byte for byte, and a longer history of the same run gives the same events first:
// seq counts in the order in which the histories tell things. A fact that only the workflow knew travels as a note in the
// next activity's input, so it stands there in the list, with the time at which it happened.
package events
