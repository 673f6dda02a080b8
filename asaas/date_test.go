package asaas_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paghooks/paghooks/asaas"
)

// spellings are those seen in Asaas's deliveries and documentation, each with
// the instant and the day in Brasília that it means.
var spellings = []struct{ text, instant, day, reason string }{
	{"2026-08-08", "2026-08-08T00:00:00-03:00", "2026-08-08", "most fields of a payment"},
	{"2026-08-08 20:45:13", "2026-08-08T20:45:13-03:00", "2026-08-08", "the envelope"},
	{"2026-08-08 23:59:59.999", "2026-08-08T23:59:59.999-03:00", "2026-08-08", "a fraction of a second"},
	{"2026-08-08T20:35:18Z", "2026-08-08T17:35:18-03:00", "2026-08-08", "lastInvoiceViewedDate"},
	{"2026-08-09T02:59:59.5Z", "2026-08-08T23:59:59.5-03:00", "2026-08-08", "already tomorrow in UTC"},
	{"2026-08-08T20:45:13-03:00", "2026-08-08T20:45:13-03:00", "2026-08-08", "with an offset"},
	{"2024-10-31T03:00:00+0000", "2024-10-31T00:00:00-03:00", "2024-10-31", "checkout.subscription"},
	{"2026-08-08T20:45:13", "2026-08-08T20:45:13-03:00", "2026-08-08", "a T and no zone"},
	{"08/09/2026", "2026-09-08T00:00:00-03:00", "2026-09-08", "the day comes first"},
	{"31/12/2026", "2026-12-31T00:00:00-03:00", "2026-12-31", "there is no month 31"},
	{"03/08/2026 20:55:10", "2026-08-03T20:55:10-03:00", "2026-08-03", "immediateQrCode.expirationDate"},
	{"2018-12-24", "2018-12-24T00:00:00-02:00", "2018-12-24", "summer time, while Brazil had it"},
	{"2018-11-04", "2018-11-04T01:00:00-02:00", "2018-11-04", "a day that began at 1 o'clock"},
}

func TestEverySpellingOfATimeIsRead(t *testing.T) {
	t.Parallel()
	for _, tt := range spellings {
		got, err := asaas.DateTime(tt.text).Time()
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		want, _ := time.Parse(time.RFC3339, tt.instant)
		if !got.Equal(want) || got.Location() != asaas.Brasilia() {
			t.Errorf("%s: %q is %s, want %s", tt.reason, tt.text, got, want)
		}
	}
}

func TestEverySpellingOfADayIsRead(t *testing.T) {
	t.Parallel()
	for _, tt := range spellings {
		got, err := asaas.Date(tt.text).Time()
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		if got.Format(time.DateOnly) != tt.day || got.Location() != asaas.Brasilia() {
			t.Errorf("%s: %q is %s, want %s", tt.reason, tt.text, got, tt.day)
		}
		if before := got.Add(-time.Nanosecond); before.Format(time.DateOnly) == tt.day {
			t.Errorf("%s: %s is not the day's first instant", tt.reason, got)
		}
	}
}

func TestAnUnknownSpellingDecodesAndIsNotUsed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "tomorrow", "2026-13-01", "31/02/2026", "2026-08-08 25:00:00", "08-09-2026", "8/9/2026", "1786000000", "\x00"} {
		body, _ := json.Marshal(map[string]string{"dateCreated": text})
		e := new(asaas.Envelope)
		if err := json.Unmarshal(body, e); err != nil || string(e.DateCreated) != text {
			t.Errorf("%q: decoded as %q, %v", text, e.DateCreated, err)
		}
		if got, err := e.DateCreated.Time(); err == nil {
			t.Errorf("%q: DateTime is read as %s", text, got)
		}
		if got, err := asaas.Date(text).Time(); err == nil {
			t.Errorf("%q: Date is read as %s", text, got)
		}
	}
}

func TestAnErrorOfADateDoesNotTellWhatWasSent(t *testing.T) {
	t.Parallel()
	_, err := asaas.Date("never").Time()
	if err == nil || strings.Contains(err.Error(), "never") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyAnEmptyDateIsZero(t *testing.T) {
	t.Parallel()
	if !asaas.Date("").IsZero() || !asaas.DateTime("").IsZero() || asaas.Date("x").IsZero() || asaas.DateTime("x").IsZero() {
		t.Error("IsZero is not: there is no text")
	}
}

func FuzzDate(f *testing.F) {
	for _, tt := range spellings {
		f.Add(tt.text)
	}
	f.Add("2026-08-08T20:35:18.123456789123Z")
	f.Add("0000-01-01")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // JSON cannot carry it
		}
		sent, _ := json.Marshal(map[string]string{"date": text, "time": text})
		var f struct {
			Date asaas.Date     `json:"date"`
			Time asaas.DateTime `json:"time"`
		}
		if err := json.Unmarshal(sent, &f); err != nil {
			t.Fatalf("%q does not decode: %v", text, err)
		}
		if written, err := json.Marshal(f); err != nil || string(written) != string(sent) {
			t.Errorf("%s is written back as %s, %v", sent, written, err)
		}
		instant, err := f.Time.Time()
		day, dayErr := f.Date.Time()
		if (err == nil) != (dayErr == nil) {
			t.Fatalf("%q: DateTime says %v, Date says %v", text, err, dayErr)
		}
		if want, wantErr := time.Parse(time.RFC3339, text); wantErr == nil && !instant.Equal(want) {
			t.Errorf("%q is %s, want %s", text, instant, want)
		}
		if err == nil && (day.After(instant) || day.Format(time.DateOnly) != instant.Format(time.DateOnly)) {
			t.Errorf("%q: its day is %s, its instant %s", text, day, instant)
		}
	})
}
