package value_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/value"
)

type color string

type nested struct {
	Size value.Optional[int] `json:"size,omitzero"`
}

type fields struct {
	Text   value.Optional[string]         `json:"text,omitzero"`
	Color  value.Optional[color]          `json:"color,omitzero"`
	Flag   value.Optional[bool]           `json:"flag,omitzero"`
	Number value.Optional[int]            `json:"number,omitzero"`
	List   value.Optional[[]string]       `json:"list,omitzero"`
	Object value.Optional[nested]         `json:"object,omitzero"`
	Own    value.Optional[big.Int]        `json:"own,omitzero"`   // a json.Unmarshaler
	Words  value.Optional[netip.Addr]     `json:"words,omitzero"` // an encoding.TextUnmarshaler
	Map    value.Optional[map[string]int] `json:"map,omitzero"`
}

func TestWhatWasSentIsWrittenBack(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`,
		`{"text":null,"color":null,"flag":null,"number":null,"list":null,"object":null,"own":null,"words":null,"map":null}`,
		`{"text":"","color":"","flag":false,"number":0,"list":[],"object":{},"own":0,"words":"","map":{}}`,
		`{"text":"a","color":"red","flag":true,"number":-7,"list":["a","b"],"object":{"size":1},"own":123456789012345678901234567890,"words":"10.0.0.1","map":{"a":1}}`,
		`{"object":{"size":null}}`,
	} {
		var f fields
		if err := json.Unmarshal([]byte(body), &f); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got, err := json.Marshal(f)
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if diff := cmp.Diff(body, string(got)); diff != "" {
			t.Errorf("written back (-sent +got):\n%s", diff)
		}
	}
}

func TestAbsentNullAndZeroAreThreeThings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body          string
		want          value.Optional[string]
		value         string
		ok            bool
		isNull, isZer bool
	}{
		{body: `{}`, want: value.Optional[string]{}, value: "", isZer: true},
		{body: `{"text":null}`, want: value.Null[string](), isNull: true},
		{body: `{"text":""}`, want: value.Of(""), ok: true},
		{body: `{"text":"a"}`, want: value.Of("a"), value: "a", ok: true},
	} {
		var f fields
		if err := json.Unmarshal([]byte(tt.body), &f); err != nil {
			t.Errorf("%s: %v", tt.body, err)
		}
		val, ok := f.Text.Get()
		if f.Text != tt.want || val != tt.value || ok != tt.ok {
			t.Errorf("%s: got %v, Get() = %q, %v", tt.body, f.Text, val, ok)
		}
		if f.Text.IsNull() != tt.isNull || f.Text.IsZero() != tt.isZer {
			t.Errorf("%s: IsNull() = %v, IsZero() = %v", tt.body, f.Text.IsNull(), f.Text.IsZero())
		}
		want := "fallback"
		if tt.ok {
			want = tt.value
		}
		if got := f.Text.Or("fallback"); got != want {
			t.Errorf("%s: Or() = %q, want %q", tt.body, got, want)
		}
	}
}

func TestTextsAreReadAsEncodingJSONReadsThem(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ literal, reason string }{
		{`"plain"`, "the short cut"},
		{`""`, "nothing between the quotes"},
		{`"\u00e7\u00e3o"`, "escapes, as Asaas writes them"},
		{`"\ud83d\ude9a"`, "two escapes for one character"},
		{`"ção"`, "not ASCII"},
		{"\"\xff\"", "not UTF-8: replaced"},
		{`"a\"b\\c\/d\n"`, "escaped quotes and slashes"},
		{`"\u0000"`, "a NUL"},
	} {
		var got value.Optional[string]
		var want string
		if err := got.UnmarshalJSON([]byte(tt.literal)); err != nil {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if err := json.Unmarshal([]byte(tt.literal), &want); err != nil {
			t.Fatal(err)
		}
		if got != value.Of(want) {
			t.Errorf("%s: got %q, want %q", tt.reason, got.Or("nothing"), want)
		}
	}
}

func TestAValueThatDoesNotDecodeIsAbsent(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{`"a"`, `1.5`, `{`, ``, `"`, `nul`, `true`} {
		v := value.Of(7)
		if err := v.UnmarshalJSON([]byte(literal)); err == nil || !v.IsZero() {
			t.Errorf("%q: got %v, %v; want an error and nothing", literal, v, err)
		}
	}
}

func TestTheLastOfTwoDecodingsCounts(t *testing.T) {
	t.Parallel()
	var f fields
	body := `{"list":["a","b"],"list":["c"],"map":{"a":1},"map":{"b":2},"object":{"size":1},"object":{}}`
	if err := json.Unmarshal([]byte(body), &f); err != nil {
		t.Fatal(err)
	}
	want := fields{
		List:   value.Of([]string{"c"}),
		Map:    value.Of(map[string]int{"b": 2}),
		Object: value.Of(nested{}),
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestAnErrorTellsThePathOfTheField(t *testing.T) {
	t.Parallel()
	var f struct {
		Outer fields `json:"outer"`
	}
	err := json.Unmarshal([]byte(`{"outer":{"object":{"size":"large"}}}`), &f)
	var typeError *json.UnmarshalTypeError
	if !errors.As(err, &typeError) || typeError.Field != "outer.object.size" {
		t.Errorf("got %v, want the path outer.object.size", err)
	}
}

func TestEqualComparesWhatIsNotComparable(t *testing.T) {
	t.Parallel()
	list := value.Of([]string{"a"})
	for _, tt := range []struct {
		other  value.Optional[[]string]
		want   bool
		reason string
	}{
		{value.Of([]string{"a"}), true, "the same list"},
		{value.Of([]string{"b"}), false, "another list"},
		{value.Null[[]string](), false, "null"},
		{value.Optional[[]string]{}, false, "absent"},
	} {
		if got := list.Equal(tt.other); got != tt.want {
			t.Errorf("%s: Equal() = %v", tt.reason, got)
		}
	}
	if value.Null[[]string]().Equal(value.Optional[[]string]{}) {
		t.Error("null equals absent")
	}
}

// FuzzUnmarshal checks that an Optional decodes what a pointer decodes, to the
// same, and nothing else.
func FuzzUnmarshal(f *testing.F) {
	for _, literal := range []string{`null`, `"a"`, `"\u00e7"`, `"a`, `true`, `false`, `-1`, `1e400`, `["a"]`, `{"size":1}`, "\"\xff\"", "\"\x01\"", ` "a" `} {
		f.Add(literal)
	}
	f.Fuzz(func(t *testing.T, literal string) {
		agree[string](t, literal)
		agree[color](t, literal)
		agree[bool](t, literal)
		agree[int](t, literal)
		agree[[]string](t, literal)
		agree[nested](t, literal)
		agree[time.Time](t, literal)
		agree[netip.Addr](t, literal)
	})
}

func agree[T any](t *testing.T, literal string) {
	t.Helper()
	var got struct{ F value.Optional[T] }
	var want struct{ F *T }
	body := []byte(`{"F":` + literal + `}`)
	gotErr, wantErr := json.Unmarshal(body, &got), json.Unmarshal(body, &want)
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%q as %T: got error %v, want %v", literal, want.F, gotErr, wantErr)
	}
	if wantErr != nil {
		return
	}
	expected := value.Null[T]()
	if want.F != nil {
		expected = value.Of(*want.F)
	}
	if got.F.IsZero() {
		expected = value.Optional[T]{} // the literal closed the object and opened another
	}
	if !got.F.Equal(expected) {
		t.Errorf("%q as %T: got %v, want %v", literal, want.F, got.F, expected)
	}
}

func TestAValuePrintsAsWhatItHolds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		verb   string
		arg    any
		want   string
		reason string
	}{
		{"%v", value.Of("a b"), "a b", "a string"},
		{"%s|%q", value.Of("a b"), "a b", "a verb of T's"},
		{"%5d|", value.Of(7), "    7|", "a width"},
		{"%.2f", value.Of(1.5), "1.50", "a precision"},
		{"%v", value.Of(time.Second), "1s", "T's own String"},
		{"%+v", value.Of(struct{ A int }{7}), "{A:7}", "a flag"},
		{"%v", value.Of(""), "", "an empty string"},
		{"%v", value.Null[string](), "<nil>", "null"},
		{"%d", value.Optional[int]{}, "<nil>", "absent"},
		{"%#v", value.Of("a"), `value.Of("a")`, "Go syntax"},
		{"%#v", value.Null[int](), "value.Null[int]()", "null in Go syntax"},
		{"%#v", value.Optional[int]{}, "value.Optional[int]{}", "absent in Go syntax"},
		{"%v", struct{ A, B value.Optional[int] }{A: value.Of(1)}, "{1 <nil>}", "inside of a struct"},
	} {
		args := []any{tt.arg}
		if tt.verb == "%s|%q" {
			args, tt.want = append(args, tt.arg), `a b|"a b"`
		}
		if got := fmt.Sprintf(tt.verb, args...); got != tt.want {
			t.Errorf("%s: printed %q, want %q", tt.reason, got, tt.want)
		}
	}
	if got := value.Of(7).String(); got != "7" {
		t.Errorf("String() is %q", got)
	}
}

func TestAValueIsLoggedAsWhatItHolds(t *testing.T) {
	t.Parallel()
	var text, json bytes.Buffer
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&text, nil)), slog.New(slog.NewJSONHandler(&json, nil))} {
		logger.Info("x", "a", value.Of(7), "b", value.Null[int](), "c", value.Of("d e"))
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
		v    value.Optional[color]
		want string
	}{{value.Of(color("red")), "red"}, {value.Null[color](), "none"}, {value.Optional[color]{}, "none"}, {value.Of(color("blue")), "other"}} {
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
	switch value.Of(color("red")) { // an Optional itself compares, too
	case value.Of(color("red")):
	default:
		t.Error("an Optional is not itself")
	}
}

func TestAPointerIsACopyOrNil(t *testing.T) {
	t.Parallel()
	v := value.Of(7)
	if p := v.Ptr(); p == nil || *p != 7 {
		t.Errorf("got %v", p)
	} else if *p = 8; v != value.Of(7) {
		t.Error("the pointer is into the Optional")
	}
	if value.Null[int]().Ptr() != nil || (value.Optional[int]{}).Ptr() != nil {
		t.Error("nothing has a pointer")
	}
}

type part[S, N any] struct {
	Value N `json:"value,omitzero"`
	Type  S `json:"type,omitzero"`
}

// record is shaped like a payment: some twenty optional fields, most of them
// texts or null, and a few objects.
type record[S, B, N, P any] struct {
	Subscription S `json:"subscription,omitzero"`
	Checkout     S `json:"checkout,omitzero"`
	Link         S `json:"link,omitzero"`
	Description  S `json:"description,omitzero"`
	Pix          S `json:"pix,omitzero"`
	QrCode       S `json:"qrCode,omitzero"`
	Confirmed    S `json:"confirmed,omitzero"`
	Paid         S `json:"paid,omitzero"`
	PaidByClient S `json:"paidByClient,omitzero"`
	Credited     S `json:"credited,omitzero"`
	Estimated    S `json:"estimated,omitzero"`
	Reference    S `json:"reference,omitzero"`
	Receipt      S `json:"receipt,omitzero"`
	Slip         S `json:"slip,omitzero"`
	Viewed       S `json:"viewed,omitzero"`
	Late         B `json:"late,omitzero"`
	Original     N `json:"original,omitzero"`
	Interest     N `json:"interest,omitzero"`
	Fine         P `json:"fine,omitzero"`
	Discount     P `json:"discount,omitzero"`
}

const recordBody = `{"checkout":null,"link":null,"description":"Mensalidade de junho","pix":"b1f0a9d2-2f4c-4c38-8a52-6f7f0c7b3d9e",` +
	`"qrCode":"LOJAEXEMPLO00000000000008812345ASA","confirmed":"2026-08-08","paid":"2026-08-08","paidByClient":"2026-08-08",` +
	`"credited":"2026-08-08","estimated":"2026-08-08","reference":"pedido-4711","receipt":"https://example.com/comprovantes/5520118847712094",` +
	`"slip":null,"viewed":null,"late":true,"original":null,"interest":5,"fine":{"value":2,"type":"PERCENTAGE"},"discount":{"value":0,"type":"FIXED"}}`

type (
	valueRecord = record[value.Optional[string], value.Optional[bool], value.Optional[int64],
		value.Optional[part[value.Optional[string], value.Optional[int64]]]]
	pointerRecord = record[*string, *bool, *int64, *part[*string, *int64]]
)

// BenchmarkDecode compares an Optional with the pointer that would stand in its
// place, which cannot tell null from absent.
func BenchmarkDecode(b *testing.B) {
	b.Run("values", decodes[valueRecord])
	b.Run("pointers", decodes[pointerRecord])
}

func decodes[T any](b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := json.Unmarshal([]byte(recordBody), new(T)); err != nil {
			b.Fatal(err)
		}
	}
}
