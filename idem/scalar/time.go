package scalar

import (
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

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
	return time.Time{}, errors.New("scalar: the text is not an ISO 8601 time: keep it as text, string(t)")
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
