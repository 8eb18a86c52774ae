// Package strictyaml reads the YAML files that people write: configuration, rules, scenarios. What a lenient reader would
// drop or guess is a Problem here, with the file, the line and what was expected.
//
// Strict means: a file is one document; every field is one that the Go type has, given once, with a name that is text; every
// value is of the field's type, and none is left empty; there are no anchors, aliases or merges, and nothing nests deeper
// than anyone would write. Numbers are finite. A field of type any takes what JSON can hold, so no dates and no binary.
//
// Fields are those of the yaml struct tags. A type that is an encoding.TextUnmarshaler reads text, and its error is the
// Problem's, so it should say what was expected.
//
// Decode gives a Document, which still knows where everything stood: whoever checks the values afterwards makes Problems of
// the same form with it. All Problems of a file are told, not only the first. Callers bound how large a file may be.
package strictyaml
