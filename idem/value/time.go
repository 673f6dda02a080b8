package value

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Date is a day without a time zone, as a provider wrote it: "2026-08-08".
// Decoding keeps the text and never fails; using a text that is no date fails.
//
// It is a good argument of tx.Exec: a date column gets the day, any column NULL
// for an empty Date, and it is scanned from a date or text column.
type Date string

// Time returns the day's midnight in UTC. An empty Date is an error, as is a
// text that is no date.
func (d Date) Time() (time.Time, error) {
	t, err := time.Parse(time.DateOnly, string(d))
	if err != nil {
		return time.Time{}, errors.New("value: the text is not a date such as 2026-08-08: keep it as text, string(d)")
	}
	return t, nil
}

// IsZero reports whether there is no date.
func (d Date) IsZero() bool { return d == "" }

// Value implements [driver.Valuer]: the day as 2026-08-08, or NULL.
func (d Date) Value() (driver.Value, error) {
	if d == "" {
		return nil, nil
	}
	if _, err := d.Time(); err != nil {
		return nil, err
	}
	return string(d), nil
}

// TextValue implements [pgtype.TextValuer], without which pgx would send a text
// that is no date, and Postgres guess: "today" is a date for it.
func (d Date) TextValue() (pgtype.Text, error) {
	v, err := d.Value()
	text, ok := v.(string)
	return pgtype.Text{String: text, Valid: ok}, err
}

// DateValue implements [pgtype.DateValuer].
func (d Date) DateValue() (pgtype.Date, error) {
	if d == "" {
		return pgtype.Date{}, nil
	}
	t, err := d.Time()
	return pgtype.Date{Time: t, Valid: err == nil}, err
}

// Scan implements [database/sql.Scanner]. NULL is an empty Date.
func (d *Date) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*d = ""
	case string:
		*d = Date(src)
	case []byte:
		*d = Date(src)
	case time.Time:
		*d = Date(src.Format(time.DateOnly))
	default:
		return fmt.Errorf("value: a %T is not scanned into a Date: select a column of type date or text", src)
	}
	return nil
}

// Time is a point in time as a provider wrote it, "2025-01-15T10:30:00.000Z".
// Decoding keeps the text and never fails; using a text that is no time fails.
//
// It is a good argument of tx.Exec: any column gets the instant in UTC, a text
// column as RFC 3339, and NULL for an empty Time. Use string(t) to store the
// text as it was sent.
type Time string

// The spellings of ISO 8601 and RFC 3339. Parsing takes a fraction of a second
// after any of them.
var layouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05Z07",
	"2006-01-02T15:04:05",
}

// Time returns the instant. A time without zone is read as UTC. An empty Time is an error, as is an unknown
// spelling.
func (t Time) Time() (time.Time, error) {
	s := strings.Replace(strings.ToUpper(string(t)), " ", "T", 1)
	for _, layout := range layouts {
		if at, err := time.Parse(layout, s); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("value: the text is not an ISO 8601 time: keep it as text, string(t)")
}

// Value implements [driver.Valuer].
func (t Time) Value() (driver.Value, error) {
	if t == "" {
		return nil, nil
	}
	at, err := t.Time()
	if err != nil {
		return nil, err
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}

// TextValue implements [pgtype.TextValuer], without which pgx would send the
// text as it is and Postgres guess: "today" is a time for it, and the offset
// of another zone nothing for a timestamp without one.
func (t Time) TextValue() (pgtype.Text, error) {
	v, err := t.Value()
	text, ok := v.(string)
	return pgtype.Text{String: text, Valid: ok}, err
}

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (t Time) TimestamptzValue() (pgtype.Timestamptz, error) {
	if t == "" {
		return pgtype.Timestamptz{}, nil
	}
	at, err := t.Time()
	return pgtype.Timestamptz{Time: at, Valid: err == nil}, err
}
