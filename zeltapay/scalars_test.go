package zeltapay_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

func TestCentsAreWholeAndExact(t *testing.T) {
	t.Parallel()
	const refused = -1
	for _, c := range []struct {
		why, text string
		want      zeltapay.Cents
	}{
		{"as documented", `1500`, 1500},
		{"as a float's encoder writes it", `1500.0`, 1500},
		{"as text", `"1500"`, 1500},
		{"as text with a fraction of nothing", `"1500.00"`, 1500},
		{"nothing paid", `0`, 0},
		{"more than a float can hold", `9007199254740993`, 9007199254740993},
		{"half a cent", `1500.5`, refused},
		{"half a cent as text", `"1500.5"`, refused},
		{"more than an int64", `9223372036854775808`, refused},
		{"a word", `"many"`, refused},
		{"nothing as text", `""`, refused},
		{"a currency", `"1500 USD"`, refused},
		{"a boolean", `true`, refused},
		{"an object", `{"cents":1500}`, refused},
	} {
		got := zeltapay.Cents(7)
		err := json.Unmarshal([]byte(c.text), &got)
		if want := c.want != refused; (err == nil) != want || want && got != c.want {
			t.Errorf("%s, %s: got %d, %v", c.why, c.text, got, err)
		}
	}
}

func TestTimesAreReadInEverySpellingOfISO8601(t *testing.T) {
	t.Parallel()
	want := time.Date(2025, 1, 15, 10, 30, 0, 0, time.UTC)
	for _, text := range []zeltapay.Time{
		"2025-01-15T10:30:00.000Z", "2025-01-15T10:30:00Z", "2025-01-15t10:30:00z", "2025-01-15 10:30:00Z",
		"2025-01-15T10:30:00,000Z", "2025-01-15T10:30:00", "2025-01-15T10:30:00.000000000",
		"2025-01-15T05:30:00-05:00", "2025-01-15T05:30:00-0500", "2025-01-15T05:30:00.0-05",
	} {
		if got, err := text.Time(); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []zeltapay.Time{"", "15/01/2025", "2025-01-15", "1640995200", "2025-13-15T10:30:00Z", "today"} {
		if got, err := text.Time(); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestMetadataKeepsEveryDigit(t *testing.T) {
	t.Parallel()
	const sent = `{"a":"x","b":12345678901234567890.10,"c":true,"d":null,"e":"é\n","f":{"g":1}}`
	var m zeltapay.Metadata
	if err := json.Unmarshal([]byte(sent), &m); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "x", "b": "12345678901234567890.10", "c": "true", "e": "é\n"} {
		if got, ok := m.String(key); got != want || !ok {
			t.Errorf("%s is %q, %t, want %q", key, got, ok, want)
		}
	}
	for _, key := range []string{"d", "f", "absent"} {
		if got, ok := m.String(key); got != "" || ok {
			t.Errorf("%s is %q, %t", key, got, ok)
		}
	}
	if got := string(encoded(t, m)); got != sent {
		t.Errorf("encoded as %s", got)
	}
}
