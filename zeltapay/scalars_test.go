package zeltapay_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
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
		{"with an exponent", `15e2`, 1500},
		{"nothing paid", `0`, 0},
		{"a sign that JSON does not have", `"+1500"`, refused},
		{"zeros in front of text", `"0150"`, refused},
		{"a point and nothing", `"1500."`, refused},
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

const (
	inPanama = zeltapay.Time("2025-01-15T05:30:00.5-05:00")
	zoneless = zeltapay.Time("2025-01-15T10:30:00.5")
	noTime   = zeltapay.Time("today") // which is one for Postgres
)

// elsewhere is a connection whose session is not in UTC.
func elsewhere(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := idemtest.Pool(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(t.Context(), `set time zone 'Asia/Kathmandu'`); err != nil {
		t.Fatal(err)
	}
	return conn.Conn()
}

// asText selects an argument for a column of a type.
func asText(columnType string) string {
	if columnType == "timestamptz" {
		return `select ($1::timestamptz at time zone 'UTC')::text`
	}
	return `select ($1::` + columnType + `)::text`
}

func TestTimesAreArgumentsOfAQuery(t *testing.T) {
	t.Parallel()
	conn := elsewhere(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, sent := range []zeltapay.Time{inPanama, zoneless} {
			for columnType, want := range map[string]string{
				"timestamptz": "2025-01-15 10:30:00.5",
				"timestamp":   "2025-01-15 10:30:00.5",
				"date":        "2025-01-15",
				"text":        "2025-01-15T10:30:00.5Z",
			} {
				for _, arg := range []any{sent, value.Of(sent)} {
					var got string
					if err := conn.QueryRow(t.Context(), asText(columnType), mode, arg).Scan(&got); err != nil || got != want {
						t.Errorf("%s: the %T %s as %s is %s, %v", mode, arg, sent, columnType, got, err)
					}
				}
			}
		}
	}
}

func TestUnknownSpellingIsNeverStoredAsATime(t *testing.T) {
	t.Parallel()
	conn := elsewhere(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, columnType := range []string{"timestamptz", "timestamp", "date", "text"} {
			for _, arg := range []any{noTime, value.Of(noTime)} {
				var got *string
				if err := conn.QueryRow(t.Context(), asText(columnType), mode, arg).Scan(&got); err == nil {
					t.Errorf("%s: the %T as %s is stored", mode, arg, columnType)
				}
			}
		}
	}
}

func TestScalarsAreArgumentsOfAQuery(t *testing.T) {
	t.Parallel()
	conn := elsewhere(t)
	metadata := zeltapay.Metadata{"orderId": json.RawMessage(`"A-1"`), "n": json.RawMessage(`1.10`)}
	const null = "NULL"
	for _, c := range []struct {
		why        string
		columnType string
		arg        any
		want       string
	}{
		{"the text as it was sent", "text", string(noTime), "today"},
		{"no time", "timestamptz", zeltapay.Time(""), null},
		{"no time, without a zone", "timestamp", zeltapay.Time(""), null},
		{"no time as text", "text", zeltapay.Time(""), null},
		{"an absent time", "timestamptz", value.Optional[zeltapay.Time]{}, null},
		{"an amount", "bigint", zeltapay.Cents(1500), "1500"},
		{"an amount in a small column", "integer", zeltapay.Cents(1500), "1500"},
		{"an exact amount", "numeric", zeltapay.Cents(1500), "1500"},
		{"an optional amount", "bigint", value.Of(zeltapay.Cents(1500)), "1500"},
		{"metadata", "jsonb", metadata, `{"n": 1.10, "orderId": "A-1"}`},
		{"metadata to the letter", "json", metadata, `{"n":1.10,"orderId":"A-1"}`},
		{"metadata as text", "text", metadata, `{"n":1.10,"orderId":"A-1"}`},
		{"optional metadata", "jsonb", value.Of(metadata), `{"n": 1.10, "orderId": "A-1"}`},
		{"no metadata", "jsonb", zeltapay.Metadata(nil), null},
		{"null metadata", "jsonb", value.Null[zeltapay.Metadata](), null},
	} {
		got := null
		var stored *string
		if err := conn.QueryRow(t.Context(), asText(c.columnType), c.arg).Scan(&stored); err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if stored != nil {
			got = *stored
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}
