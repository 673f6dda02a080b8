package peek_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/peek"
)

// fields is an object with a field of each kind.
type fields struct {
	ID     string `json:"id"`
	Object struct {
		Key string `json:"key"`
	} `json:"object"`
}

func found(body []byte) (f fields, whole bool) {
	whole = peek.Members(body, func(name, value []byte) {
		switch {
		case is(name, "id"):
			readString(value, &f.ID)
		case is(name, "object"):
			peek.Members(value, func(name, value []byte) {
				if is(name, "key") {
					readString(value, &f.Object.Key)
				}
			})
		}
	})
	return f, whole
}

func is(name []byte, field string) bool { return bytes.EqualFold(peek.Name(name), []byte(field)) }

func readString(value []byte, s *string) {
	if value[0] == '"' {
		peek.Text(value, s)
	}
}

func TestOnlyAWholeObjectIsWhole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body   string
		want   bool
		reason string
	}{
		{` {} `, true, "empty"},
		{` { "id" : "1" , "x" : [ { } ] } ` + "\n", true, "white space"},
		{`{"id":"a\"}{","x":{"y":"}"}}`, true, "quotes and brackets in strings"},
		{`{"id":"a\\"}`, true, "a backslash at the end of a string"},
		{`{"id":"1"`, false, "cut off after a value"},
		{`{"id":"1`, false, "cut off in a string"},
		{`{"id":"1\"}`, false, "cut off in a string that ends in a quote"},
		{`{"id":{"a":[1,2}`, false, "cut off in an object"},
		{`{"id":`, false, "cut off before a value"},
		{`{"id"`, false, "cut off before a colon"},
		{`{"id":"1",`, false, "cut off before a name"},
		{`{"id":"1"} {}`, false, "another object"},
		{`{"id":"1"},`, false, "a comma"},
		{`{id:"1"}`, false, "a name without quotes"},
		{`{"id":}`, false, "no value"},
		{`{"id" "1"}`, false, "no colon"},
		{`["id"]`, false, "a list"},
		{`null`, false, "null"},
		{``, false, "nothing"},
	} {
		if _, whole := found([]byte(tt.body)); whole != tt.want {
			t.Errorf("%s: whole is %t", tt.reason, whole)
		}
	}
}

func TestATextMayBeANumber(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"a"`: "a", `"\u00e7"`: "ç", `-1.50`: "-1.50", `7`: "7", `null`: "before", `true`: "before", `{}`: "before", `[]`: "before", `"\x"`: "before",
	} {
		got := "before"
		if peek.Text([]byte(value), &got); got != want {
			t.Errorf("%s is read as %q, want %q", value, got, want)
		}
	}
}

func TestLossyIsATextThatOthersDecodeTo(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"\"a\xff\"": true, `"\ud800"`: true, `"\udc00\ud800"`: true, `"\ufffd"`: true, `"�"`: true,
		`"a"`: false, `"ç"`: false, `"\ud83d\ude00"`: false, `"\\ud800"`: false, `7`: false, `{"a":"\ud800"}`: false,
	} {
		if got := peek.Lossy([]byte(value)); got != want {
			t.Errorf("%s is lossy: %t", value, got)
		}
	}
}

// Valid JSON has the members that encoding/json decodes.
func FuzzMembers(f *testing.F) {
	for _, body := range []string{
		`{"id":"1","object":{"key":"2"}}`, `{"ID":"1","id":null,"\u0069d":"\u0031","object":{"key":"2"},"OBJECT":{"x":1}}`,
		`{"id":7,"object":[]}`, ` {"x":["\"",{"id":"no"}],"id":"\ud800"} `, `{}`, `[]`, "{\"\u017fid\":1,\"id\":\"\xff\"}", `{"object":{"\u212Aey":"a"}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := slices.Clone(body)
		got, whole := found(body)
		if !slices.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if !json.Valid(body) {
			return
		}
		if object := strings.HasPrefix(strings.TrimLeft(string(body), " \t\r\n"), "{"); whole != object {
			t.Fatalf("%q: whole is %t", body, whole)
		}
		var want fields
		_ = json.Unmarshal(body, &want) // fields that do not fit are left alone
		if whole && got != want {
			t.Errorf("%q: found %+v, want %+v", body, got, want)
		}
	})
}

func BenchmarkMembers(b *testing.B) {
	body := []byte(`{"id":"1","object":{"key":"2","x":"` + strings.Repeat("x", 30) + strings.Repeat(`","y":"a word","z":12.5,"more":{"a":null},"x":"`, 30) + `"}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, whole := found(body); !whole {
			b.Fatal("it is not whole")
		}
	}
}
