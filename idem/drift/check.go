package drift

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/internal/shape"
)

// Essential is something that an event is nothing without: its entity's id,
// amount or status.
type Essential struct {
	// Zero reports whether the struct that the event was decoded into has nothing
	// there, or a zero: the two look the same in Go.
	Zero bool

	// Paths are its places in the body, payment.value for example. Of several,
	// one is enough.
	Paths []string
}

// Incomplete is the error for an event without something that it is nothing
// without.
type Incomplete struct {
	Path string // how far the body leads to it; of several paths, along the first
	Kind Kind   // MissingRequired, or UnexpectedNull
	said string
}

// Error implements [error].
func (i *Incomplete) Error() string {
	return "drift: " + i.said + ", and the event is nothing without it: look for a newer version of this module"
}

// Check returns an [*Incomplete] if body lacks a field that its event is nothing
// without: if it is missing, null, or an empty text. The generated event types
// call it; the body is read again only where the struct has a zero.
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
