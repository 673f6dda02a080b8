package check

import (
	"slices"
	"strings"
)

// Finding is one thing that is wrong, or worth knowing: a cause, and not what follows from it. Package doctor finds them
// all; package health, the page and idem stats tell the same ones in the same words.
type Finding struct {
	Check    string   `json:"check"` // the name of the check that found it: "failing", "migrations"
	Severity Severity `json:"severity"`
	Source   string   `json:"source,omitempty"` // the source of its events; "" for the database
	Problem  string   `json:"problem"`
	Evidence string   `json:"evidence"`          // the measured values; the errors of handlers in it may name persons
	Remedy   string   `json:"remedy"`            // what to do in words; "" where Command says it all
	Command  string   `json:"command,omitempty"` // to be typed as it is, for a shell, or for psql if it is SQL; "" for none
}

// Severity ranks a finding.
type Severity string

const (
	Error   Severity = "error"   // events are lost, doubled or stuck, or will be
	Warning Severity = "warning" // somebody should look at it soon
	Info    Severity = "info"    // good to know, or not visible to the role
)

// String returns the finding in one line.
func (f Finding) String() string {
	text := string(f.Severity) + ": " + f.Problem
	if f.Evidence != "" {
		text += " (" + f.Evidence + ")"
	}
	return line(text, f.Remedy, f.Command)
}

// line joins the parts that are not empty.
func line(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
}
