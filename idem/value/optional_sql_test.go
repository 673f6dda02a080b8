package value_test

import (
	"database/sql/driver"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

// amount has a Value method of its own.
type amount int64

func (a amount) Value() (driver.Value, error) { return "1.50", nil }

// day knows where its day begins.
type day string

func (d day) TimestamptzValue() (pgtype.Timestamptz, error) {
	at, err := time.Parse("2006-01-02 -07", string(d)+" -03")
	return pgtype.Timestamptz{Time: at, Valid: true}, err
}

// utc is a connection whose session is in UTC.
func utc(t *testing.T) *pgxpool.Conn {
	t.Helper()
	conn, err := idemtest.Pool(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(t.Context(), `set time zone 'UTC'`); err != nil {
		t.Fatal(err)
	}
	return conn
}

// stored is what Postgres makes of an argument for a column of a type: its
// text, or nil for NULL.
func stored(t *testing.T, conn *pgxpool.Conn, columnType string, arg any) *string {
	t.Helper()
	var got *string
	err := conn.QueryRow(t.Context(), `select ($1::`+columnType+`)::text`, arg).Scan(&got)
	if err != nil {
		t.Errorf("%s: %v", columnType, err)
	}
	return got
}

func TestAValueIsAnArgumentOfAQuery(t *testing.T) {
	t.Parallel()
	conn := utc(t)
	instant := time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC)
	for _, tt := range []struct {
		arg        any
		columnType string
		want       string
		reason     string
	}{
		{value.Of("a"), "text", "a", "a string"},
		{value.Of(""), "text", "", "an empty string is not NULL"},
		{value.Of(color("red")), "text", "red", "a type made of a string"},
		{value.Of("29.90"), "numeric", "29.90", "a string into a number"},
		{value.Of(amount(7)), "numeric", "1.50", "T's own Value method"},
		{value.Of(7), "bigint", "7", "an integer"},
		{value.Of(int16(-7)), "integer", "-7", "a smaller integer"},
		{value.Of(true), "boolean", "true", "a boolean"},
		{value.Of("2026-08-08"), "date", "2026-08-08", "a string into a date"},
		{value.Of(instant), "date", "2026-08-08", "a time into a date"},
		{value.Of(instant), "timestamptz", "2026-08-08 23:45:13+00", "a time"},
		{value.Of("2026-08-08T20:45:13-03:00"), "timestamptz", "2026-08-08 23:45:13+00", "a string with a time zone"},
		{value.Of(day("2026-08-08")), "timestamptz", "2026-08-08 03:00:00+00", "a day that knows its time zone"},
		{value.Of(day("2026-08-08")), "date", "2026-08-08", "the same in a date"},
		{value.Of([]byte(`{}`)), "jsonb", "{}", "bytes"},
		{value.Of(1.5), "numeric", "1.5", "a float into a number"},
		{value.Of(7), "numeric", "7", "an integer into a number"},
		{value.Of(instant), "timestamp", "2026-08-08 23:45:13", "a time into a clock"},
		{value.Of("2026-08-08T20:45:13.5-03:00"), "timestamp", "2026-08-08 20:45:13.5", "a string into a clock"},
		{value.Of("2026-08-08"), "timestamp", "2026-08-08 00:00:00", "a day into a clock"},
	} {
		got := stored(t, conn, tt.columnType, tt.arg)
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestNothingIsNULL(t *testing.T) {
	t.Parallel()
	conn := utc(t)
	for _, columnType := range []string{"text", "numeric", "boolean", "date", "timestamptz", "timestamp", "bigint", "jsonb"} {
		for _, arg := range []any{
			value.Null[string](),
			value.Optional[string]{},
			value.Null[amount](),
			value.Optional[time.Time]{},
			value.Null[day](),
			value.Optional[nested]{},
		} {
			if got := stored(t, conn, columnType, arg); got != nil {
				t.Errorf("%s: %T is stored as %q, want NULL", columnType, arg, *got)
			}
		}
	}
}

func TestNothingIsNULLWithEveryProtocol(t *testing.T) {
	t.Parallel()
	conn := utc(t)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		var null, val *string
		err := conn.QueryRow(t.Context(), `select $1::text, $2::text`, mode, value.Optional[string]{}, value.Of("a")).Scan(&null, &val)
		if err != nil || null != nil || val == nil || *val != "a" {
			t.Errorf("%v: got %v, %v, %v", mode, null, val, err)
		}
	}
}

func TestWhatIsNoColumnIsRefused(t *testing.T) {
	t.Parallel()
	conn := utc(t)
	for _, tt := range []struct {
		arg        any
		columnType string
		reason     string
	}{
		{value.Of(nested{}), "text", "a struct"},
		{value.Of([]string{"a"}), "text", "a list"},
		{value.Of("2026-08-08 20:45:13"), "timestamptz", "a time without its zone would be read in the session's"},
		{value.Of(7), "timestamptz", "a number is no time"},
		{value.Of(7), "timestamp", "nor a clock"},
		{value.Of("soon"), "timestamp", "nor is a word"},
		{value.Of("many"), "numeric", "nor a number"},
	} {
		var got *string
		if err := conn.QueryRow(t.Context(), `select ($1::`+tt.columnType+`)::text`, tt.arg).Scan(&got); err == nil {
			t.Errorf("%s: want an error", tt.reason)
		}
	}
}

func TestAValueIsScannedFromAColumn(t *testing.T) {
	t.Parallel()
	conn := utc(t)
	scan := func(query string, into any) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), query).Scan(into); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	text, number, flag, at := value.Of("before"), value.Of(int16(1)), value.Optional[bool]{}, value.Optional[time.Time]{}
	scan(`select 'a'::text`, &text)
	scan(`select 7::bigint`, &number)
	scan(`select true`, &flag)
	scan(`select timestamptz '2026-08-08 23:45:13+00'`, &at)
	if text != value.Of("a") || number != value.Of(int16(7)) || flag != value.Of(true) ||
		!at.OrZero().Equal(time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC)) {
		t.Errorf("scanned %v, %v, %v, %v", text, number, flag, at)
	}
	for _, into := range []interface{ IsNull() bool }{&text, &number, &flag, &at} {
		for _, columnType := range []string{"text", "timestamp", "timestamptz", "date"} {
			scan(`select null::`+columnType, into)
			if !into.IsNull() {
				t.Errorf("NULL is scanned as %v", into)
			}
		}
	}
	if err := conn.QueryRow(t.Context(), `select 40000`).Scan(&number); err == nil {
		t.Errorf("40000 is scanned as %v", number)
	}
}
