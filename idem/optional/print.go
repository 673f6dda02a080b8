package optional

import (
	"fmt"
	"log/slog"
)

// String returns fmt.Sprint of the value, and "<nil>" for null and for absent.
func (v Value[T]) String() string { return fmt.Sprint(v) }

// Format implements [fmt.Formatter]: a Value prints as its value, with any
// verb that T has, and as <nil> for null and for absent. %#v tells them apart.
func (v Value[T]) Format(f fmt.State, verb rune) {
	switch goSyntax := verb == 'v' && f.Flag('#'); {
	case v.state == present && goSyntax:
		fmt.Fprintf(f, "optional.Of(%#v)", v.v)
	case v.state == present:
		fmt.Fprintf(f, fmt.FormatString(f, verb), v.v)
	case v.state == null && goSyntax:
		fmt.Fprintf(f, "optional.Null[%T]()", v.v)
	case goSyntax:
		fmt.Fprintf(f, "optional.Value[%T]{}", v.v)
	default:
		fmt.Fprint(f, "<nil>")
	}
}

// LogValue implements [slog.LogValuer]: a Value is logged as its value, and
// as nil for null and for absent.
func (v Value[T]) LogValue() slog.Value {
	if v.state != present {
		return slog.AnyValue(nil)
	}
	return slog.AnyValue(v.v)
}
