package drift

import (
	"cmp"
	"strings"
	"time"
)

// Kind names a difference.
type Kind string

const (
	UnknownEvent    Kind = "unknown_event"    // the event type is not in the spec
	UnknownField    Kind = "unknown_field"    // the object has no such field in the spec; its content is not looked at
	UnknownValue    Kind = "unknown_value"    // the enum has no such value in the spec
	UnexpectedNull  Kind = "unexpected_null"  // null, where the spec has a value always
	ChangedType     Kind = "changed_type"     // another type of JSON than in the spec, or a number that does not fit
	MissingRequired Kind = "missing_required" // nothing, where the spec has a value always
	Unreadable      Kind = "unreadable"       // no JSON object that names an event
	HeaderDiffers   Kind = "header_differs"   // a header that is not signed differs from the signed body; Path is its name

	// More is the kind of a last finding that stands for all those that there
	// was no room for. Its Count is how often they were seen.
	More Kind = "more"
)

// Finding is one thing that the spec does not know, wherever and however often
// it was seen.
type Finding struct {
	EventType string    // PAYMENT_RECEIVED; "" if the body names none
	Path      string    // payment.split[].taxes; "" for the body itself
	Kind      Kind      // the difference
	First     time.Time // when it was first seen
	Last      time.Time // when it was last seen
	Count     int64     // how often it was seen, in the bodies that were looked at
}

// Compare orders findings by event type, path and kind, and [More] last.
func Compare(a, b Finding) int {
	return cmp.Or(
		last(a)-last(b),
		cmp.Compare(a.EventType, b.EventType),
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Kind, b.Kind),
	)
}

func last(f Finding) int {
	if f.Kind == More {
		return 1
	}
	return 0
}

// Name returns a name that a provider sent as it is or, where it might hold
// data of somebody's (an id, a document, an address, used as the key of an
// object), as "*".
func Name(sent string) string {
	digits := 0
	for _, c := range sent {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case c != '_' && c != '-' && c != '.' && (c < 'A' || c > 'z' || 'Z' < c && c < 'a'):
			return "*"
		}
	}
	if sent == "" || len(sent) > 80 || digits > 3 {
		return "*"
	}
	return sent
}

// Join makes a path of an object's path and the name of a field of its.
func Join(path, name string) string { return strings.TrimPrefix(path+"."+Name(name), ".") }
