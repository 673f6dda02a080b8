package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/console"
)

func FuzzMaskShowsNoValue(f *testing.F) {
	for _, seed := range []string{
		`{"a":"x","b":[1,true,null,"y\"",{"c\\":-1.5e3}],"c":{},"d":[],"":""}`, `"x"`, `1`, `[["[",1],"]: {,"]`, "{\"a\xff\":\"b\xff\"}", `{"k": "\": 5,\n"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		shown := string(console.Mask(body))
		if strings.HasPrefix(shown, "not JSON, or too deep") {
			return
		}
		var v any
		// Where a number was, three dots stand that no text has around them.
		quoted := strings.ReplaceAll(strings.ReplaceAll(shown, `"•••"`, `•••`), `•••`, `"•••"`)
		if strings.Contains(string(body), "•") {
			return
		}
		if err := json.Unmarshal([]byte(quoted), &v); err != nil {
			t.Fatalf("of %q it shows %q: %v", body, shown, err)
		}
		wantMasked(t, v)
	})
}

func wantMasked(t *testing.T, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			wantMasked(t, e)
		}
	case []any:
		for _, e := range v {
			wantMasked(t, e)
		}
	case string:
		if v != "•••" {
			t.Errorf("it shows the text %q", v)
		}
	case float64:
		t.Errorf("it shows the number %v", v)
	}
}
