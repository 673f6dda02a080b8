package value_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paghooks/paghooks/idem/value"
)

func TestATextIsSentAsATextOrANumber(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		json   string
		want   value.Text
		ok     bool
		reason string
	}{
		{`"f2bd"`, "f2bd", true, "a text"},
		{`"\u00e3"`, "ã", true, "an escaped letter"},
		{`""`, "", true, "an empty text"},
		{`"00000000"`, "00000000", true, "digits, with zeros in front"},
		{`623471`, "623471", true, "a number"},
		{`1.50`, "1.50", true, "a number as it was written"},
		{`123456789012345678901234567890`, "123456789012345678901234567890", true, "a number that no integer holds"},
		{`null`, "before", true, "null, which changes nothing"},
		{`true`, "", false, "a bool"},
		{`{}`, "", false, "an object"},
		{`[1]`, "", false, "an array"},
	} {
		got := value.Text("before")
		err := json.Unmarshal([]byte(tt.json), &got)
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%s: %s became %q, %v", tt.reason, tt.json, got, err)
		}
	}
}

func ExampleText() {
	var bills []struct{ ID value.Text }
	if err := json.Unmarshal([]byte(`[{"id":"f2bd"},{"id":623471}]`), &bills); err != nil {
		fmt.Println(err)
	}
	fmt.Println(bills[0].ID, bills[1].ID)
	// Output: f2bd 623471
}

// A Text is what encoding/json makes of a string, and the digits of a number.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\ud800"`, `1e400`, `-0.10`, `null`, `{}`, ` 1 `, `"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got value.Text
		err := json.Unmarshal(data, &got)
		var s string
		var n json.Number
		switch {
		case json.Unmarshal(data, &s) == nil:
			if err != nil || string(got) != s {
				t.Errorf("got %q, %v, want %q", got, err, s)
			}
		case json.Unmarshal(data, &n) == nil:
			if err != nil || string(got) != n.String() {
				t.Errorf("got %q, %v, want %q", got, err, n)
			}
		case err == nil:
			t.Errorf("%q became %q", data, got)
		}
	})
}

// encoding/json never hands these on; other decoders may.
func TestNumbersRefuseWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{"", "abc", `"`, `"1`, "1\n", "\x00"} {
		var d value.Decimal
		var n value.Int
		var c value.Cents
		if d.UnmarshalJSON([]byte(literal)) == nil || n.UnmarshalJSON([]byte(literal)) == nil || c.UnmarshalJSON([]byte(literal)) == nil {
			t.Errorf("%q is read as %s, %d and %d", literal, d, n, c)
		}
	}
	var n value.Int
	if err := json.Unmarshal([]byte(`1e2`), &n); err != nil || n != 100 {
		t.Errorf("1e2 is %d, %v", n, err)
	}
}

func TestADateIsADayOrAnError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why  string
		text value.Date
		want string // "" where it is no date
	}{
		{"a day", "2026-08-08", "2026-08-08T00:00:00Z"},
		{"the last day of a leap year's February", "2028-02-29", "2028-02-29T00:00:00Z"},
		{"no such day", "2026-02-29", ""},
		{"another order", "08/08/2026", ""},
		{"what Postgres takes for one", "today", ""},
		{"nothing", "", ""},
	} {
		at, err := tt.text.Time()
		if (err == nil) != (tt.want != "") || err == nil && at.Format(time.RFC3339) != tt.want {
			t.Errorf("%s: %q is %v, %v", tt.why, tt.text, at, err)
		}
		stored, err := tt.text.DateValue()
		if tt.text == "" {
			if err != nil || stored.Valid {
				t.Errorf("%s: stored as %v, %v", tt.why, stored, err)
			}
			continue
		}
		if (err == nil) != (tt.want != "") || stored.Valid != (tt.want != "") {
			t.Errorf("%s: stored as %v, %v", tt.why, stored, err)
		}
		if text, err := tt.text.TextValue(); (err == nil) != (tt.want != "") || text.Valid != (tt.want != "") {
			t.Errorf("%s: stored in a text column as %v, %v", tt.why, text, err)
		}
	}
}

func TestADateIsScannedFromWhatHasOne(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 8, 8, 0, 0, 0, 0, time.UTC)
	for _, src := range []any{"2026-08-08", []byte("2026-08-08"), day} {
		var d value.Date
		if err := d.Scan(src); err != nil || d != "2026-08-08" {
			t.Errorf("%v is scanned as %q, %v", src, d, err)
		}
	}
	d := value.Date("2026-08-08")
	if err := d.Scan(nil); err != nil || !d.IsZero() {
		t.Errorf("NULL is scanned as %q, %v", d, err)
	}
	if d.Scan(7) == nil {
		t.Error("a number is scanned into a Date")
	}
	var _ pgtype.DateValuer = d
}
