package drift

import (
	"bytes"
	"fmt"
	"reflect"
)

// Check returns an error that names the path if event, a pointer to the struct
// that body was decoded into, holds zeros that body does not say: where null
// stands in place of a value that is required, or where a required object right
// in the event, the one that it is about, is missing. To encoding/json both are
// right.
//
// A required field is one that is neither an optional.Value nor a pointer, and
// whose json tag has no omitzero or omitempty. Check is quick unless there is
// something to find.
func Check(event any, body []byte) error {
	v := reflect.ValueOf(event)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil
	}
	v = v.Elem()
	p := planOf(v.Type())
	if name := p.missing(v, body); name != "" {
		return fmt.Errorf("drift: %s is missing, null or empty, and an event is nothing without it: look for a newer version of this module", name)
	}
	if !p.mayHaveNull(body) {
		return nil
	}
	if path := p.firstNull(body); path != "" {
		return fmt.Errorf("drift: %s is null, and zero would be a guess: look for a newer version of this module", path)
	}
	return nil
}

// missing is the name of an object that should be right in the event.
func (p *plan) missing(v reflect.Value, body []byte) string {
	for _, name := range p.objects {
		if f := p.fields[name]; v.FieldByIndex(f.index).IsZero() && !hasObject(body, name, f.shape) {
			return name
		}
	}
	return ""
}

// hasObject tells whether an object of that name is right in the event, with
// something in it if anything has to be.
func hasObject(body []byte, name string, s *shape) bool {
	v, _ := read(body)
	event, _ := v.(map[string]any)
	object, ok := event[name].(map[string]any)
	return ok && (len(object) > 0 || !s.requiresFields())
}

// mayHaveNull tells whether null stands in an array, or after the name of a
// field that is required somewhere.
func (p *plan) mayHaveNull(body []byte) bool {
	null := []byte("null")
	for end := 0; ; end += len(null) {
		i := bytes.Index(body[end:], null)
		if i < 0 {
			return false
		}
		end += i
		switch before, c := cutLast(body[:end]); {
		case c == '[', c == ',':
			return true
		case c == ':' && p.required[string(nameAtEnd(before))]:
			return true
		}
	}
}

// cutLast takes the last byte from text that is no space.
func cutLast(text []byte) (before []byte, last byte) {
	for n := len(text) - 1; n >= 0; n-- {
		if c := text[n]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return text[:n], c
		}
	}
	return nil, 0
}

// nameAtEnd is the name in text that ends in "name".
func nameAtEnd(text []byte) []byte {
	text, c := cutLast(text)
	if c != '"' {
		return nil
	}
	return text[bytes.LastIndexByte(text, '"')+1:]
}

func (p *plan) firstNull(body []byte) (path string) {
	v, err := read(body)
	if err != nil {
		return ""
	}
	walker{func(at string, kind Kind) {
		if kind == UnexpectedNull && path == "" {
			path = at
		}
	}}.value("", p.shape, v)
	return path
}
