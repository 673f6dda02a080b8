package provider

import (
	"encoding/json"
	"fmt"

	"github.com/paghooks/paghooks/idem/optional"
)

// Redact hides a text that is personal or secret. The generated types call it, and
// the functions below, for printing.
func Redact[T ~string](text T) T {
	if text == "" {
		return ""
	}
	return "[redacted]"
}

// RedactIn returns v with its value redacted.
func RedactIn[T any](v optional.Value[T], redact func(T) T) optional.Value[T] {
	if held, ok := v.Get(); ok {
		return optional.Of(redact(held))
	}
	return v
}

// RedactEach redacts the elements of a list.
func RedactEach[T any](redact func(T) T) func([]T) []T {
	return func(list []T) []T {
		var out []T
		for _, element := range list {
			out = append(out, redact(element))
		}
		return out
	}
}

// RedactAt redacts the value at a pointer.
func RedactAt[T any](redact func(T) T) func(*T) *T {
	return func(at *T) *T {
		if at == nil {
			return nil
		}
		out := redact(*at)
		return &out
	}
}

// RedactJSON returns the number of fields of an object, and of bytes of other JSON: "[3 fields]".
func RedactJSON(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil {
		return fmt.Appendf(nil, `"[%d fields]"`, len(fields))
	}
	return fmt.Appendf(nil, `"[%d bytes]"`, len(raw))
}
