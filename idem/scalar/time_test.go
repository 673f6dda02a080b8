package scalar_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paghooks/paghooks/idem/scalar"
)

func TestADateIsADayOrAnError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why  string
		text scalar.Date
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
		var d scalar.Date
		if err := d.Scan(src); err != nil || d != "2026-08-08" {
			t.Errorf("%v is scanned as %q, %v", src, d, err)
		}
	}
	d := scalar.Date("2026-08-08")
	if err := d.Scan(nil); err != nil || !d.IsZero() {
		t.Errorf("NULL is scanned as %q, %v", d, err)
	}
	if d.Scan(7) == nil {
		t.Error("a number is scanned into a Date")
	}
	var _ pgtype.DateValuer = d
}
