package optional_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/optional"
)

func TestAValuePrintsAsWhatItHolds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		verb   string
		arg    any
		want   string
		reason string
	}{
		{"%v", optional.Of("a b"), "a b", "a string"},
		{"%s|%q", optional.Of("a b"), "a b", "a verb of T's"},
		{"%5d|", optional.Of(7), "    7|", "a width"},
		{"%.2f", optional.Of(1.5), "1.50", "a precision"},
		{"%v", optional.Of(time.Second), "1s", "T's own String"},
		{"%+v", optional.Of(struct{ A int }{7}), "{A:7}", "a flag"},
		{"%v", optional.Of(""), "", "an empty string"},
		{"%v", optional.Null[string](), "<nil>", "null"},
		{"%d", optional.Value[int]{}, "<nil>", "absent"},
		{"%#v", optional.Of("a"), `optional.Of("a")`, "Go syntax"},
		{"%#v", optional.Null[int](), "optional.Null[int]()", "null in Go syntax"},
		{"%#v", optional.Value[int]{}, "optional.Value[int]{}", "absent in Go syntax"},
		{"%v", struct{ A, B optional.Value[int] }{A: optional.Of(1)}, "{1 <nil>}", "inside of a struct"},
	} {
		args := []any{tt.arg}
		if tt.verb == "%s|%q" {
			args, tt.want = append(args, tt.arg), `a b|"a b"`
		}
		if got := fmt.Sprintf(tt.verb, args...); got != tt.want {
			t.Errorf("%s: printed %q, want %q", tt.reason, got, tt.want)
		}
	}
	if got := optional.Of(7).String(); got != "7" {
		t.Errorf("String() is %q", got)
	}
}

func TestAValueIsLoggedAsWhatItHolds(t *testing.T) {
	t.Parallel()
	var text, json bytes.Buffer
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&text, nil)), slog.New(slog.NewJSONHandler(&json, nil))} {
		logger.Info("x", "a", optional.Of(7), "b", optional.Null[int](), "c", optional.Of("d e"))
	}
	if want := `msg=x a=7 b=<nil> c="d e"`; !bytes.Contains(text.Bytes(), []byte(want)) {
		t.Errorf("logged %s", text.Bytes())
	}
	if want := `"a":7,"b":null,"c":"d e"`; !bytes.Contains(json.Bytes(), []byte(want)) {
		t.Errorf("logged %s", json.Bytes())
	}
}

func TestOrZeroIsGoodForASwitch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		v    optional.Value[color]
		want string
	}{{optional.Of(color("red")), "red"}, {optional.Null[color](), "none"}, {optional.Value[color]{}, "none"}, {optional.Of(color("blue")), "other"}} {
		got := "other"
		switch tt.v.OrZero() {
		case "red":
			got = "red"
		case "":
			got = "none"
		}
		if got != tt.want {
			t.Errorf("%#v is %s, want %s", tt.v, got, tt.want)
		}
	}
	switch optional.Of(color("red")) { // a Value itself compares, too
	case optional.Of(color("red")):
	default:
		t.Error("a Value is not itself")
	}
}

func TestAPointerIsACopyOrNil(t *testing.T) {
	t.Parallel()
	v := optional.Of(7)
	if p := v.Ptr(); p == nil || *p != 7 {
		t.Errorf("got %v", p)
	} else if *p = 8; v != optional.Of(7) {
		t.Error("the pointer is into the Value")
	}
	if optional.Null[int]().Ptr() != nil || (optional.Value[int]{}).Ptr() != nil {
		t.Error("nothing has a pointer")
	}
}
