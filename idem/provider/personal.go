package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/paghooks/paghooks/internal/peek"
)

// Personal holds what a package does not print: by the name of a struct, the members of its JSON that are
// personal or secret, with "", and those in which such members are, with the name of their struct.
type Personal map[string]map[string]string

// Print writes the JSON of a struct, without what is personal in it.
func (p Personal) Print(f fmt.State, name string, v any) { _, _ = f.Write(p.printed(name, v)) }

// LogValue returns the JSON of a struct, without its personal values, for a log.
func (p Personal) LogValue(name string, v any) slog.Value { return slog.AnyValue(p.printed(name, v)) }

// printed is JSON that a log can have in it.
type printed []byte

func (p printed) String() string               { return string(p) }
func (p printed) MarshalJSON() ([]byte, error) { return p, nil }

func (p Personal) printed(name string, v any) printed {
	text, err := json.Marshal(v)
	if err != nil {
		return printed(`"[unprintable]"`)
	}
	return printed(p.without(text, name))
}

// without returns JSON of a struct, or a list of them, without what is personal.
func (p Personal) without(value json.RawMessage, name string) json.RawMessage {
	var out []byte
	add := func(open string, text ...[]byte) {
		if out == nil {
			out = append(out, open...)
		} else {
			out = append(out, ',')
		}
		out = append(out, bytes.Join(text, []byte(":"))...)
	}
	var list []json.RawMessage
	if bytes.HasPrefix(value, []byte("[")) && json.Unmarshal(value, &list) == nil {
		for _, element := range list {
			add("[", p.without(element, name))
		}
	}
	peek.Members(value, func(member, inner []byte) {
		if of, ok := p[name][string(peek.Name(member))]; ok && of == "" {
			inner = hidden(inner)
		} else if ok {
			inner = p.without(inner, of)
		}
		add("{", member, inner)
	})
	if out == nil {
		return value
	}
	return append(out, value[len(value)-1]) // the bracket that ends it
}

// hidden returns what is printed for a personal value: of an object the number of its fields.
func hidden(value json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	switch {
	case string(value) == `""` || string(value) == "null":
		return value
	case json.Unmarshal(value, &fields) == nil:
		return fmt.Appendf(nil, `"[%d fields]"`, len(fields))
	}
	return json.RawMessage(`"[redacted]"`)
}
