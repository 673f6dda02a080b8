package drift

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/internal/shape"
)

// Essential is a field without which an event makes no sense: its entity's id, amount or status.
type Essential struct {
	// Zero reports whether the field is zero in the decoded struct: it was sent as zero, or not sent.
	Zero bool

	// Paths are the places of the field in the body, payment.value for example. One is enough.
	Paths []string
}

// Incomplete is the error for an event without an essential field.
type Incomplete struct {
	Path string // the first missing part of the path; if there are several paths, of the first one
	Kind Kind   // MissingRequired, or UnexpectedNull
	said string
}

// Error implements error: it names the field, and the remedy.
func (i *Incomplete) Error() string {
	return "drift: " + i.said + ", and the event is nothing without it: look for a newer version of this module"
}

// Check returns an [*Incomplete] if body lacks an essential field: if the field is missing, null, or
// an empty text. The generated event types call Check. It reads the body again only if the struct
// has a zero.
func Check(body []byte, needs []Essential) error {
	for _, need := range needs {
		if !need.Zero {
			continue
		}
		if lack := lackOf(body, need.Paths); lack != nil {
			return lack
		}
	}
	return nil
}

// lackOf returns the missing field of a body that has nothing at any of the paths.
func lackOf(body []byte, paths []string) *Incomplete {
	v, err := read(body)
	if err != nil {
		return &Incomplete{Kind: Unreadable, said: "the body does not decode"}
	}
	var first *Incomplete
	for _, path := range paths {
		lack := lackAt(v, path)
		switch {
		case lack == nil:
			return nil
		case first == nil:
			first = lack
		default:
			first.said += " and " + lack.said
		}
	}
	return first
}

// lackAt returns the first name on a path that leads nowhere; nil if the path leads to a value.
func lackAt(v any, path string) *Incomplete {
	names := strings.Split(path, ".")
	for i, name := range names {
		kind, is := MissingRequired, "missing"
		object, _ := v.(map[string]any)
		sent, ok := shape.LookUp(object, name)
		switch {
		case !ok:
		case sent == nil:
			kind, is = UnexpectedNull, "null"
		case sent == "":
			is = "empty"
		default:
			v = sent
			continue
		}
		at := strings.Join(names[:i+1], ".")
		return &Incomplete{at, kind, fmt.Sprintf("%s is %s", at, is)}
	}
	return nil
}

// read decodes a body without losing a digit.
func read(body []byte) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	err = decoder.Decode(&v)
	return v, err
}
