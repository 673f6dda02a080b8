package value

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Zone says how a provider writes days and times. Its zero value is used.
type Zone interface {
	// Location returns the zone of what is written without one.
	Location() *time.Location
	// Layouts returns spellings without a zone, beside those of ISO 8601: 02/01/2006.
	Layouts() []string
}

// UTC is the [Zone] of a provider that writes ISO 8601 in UTC.
type UTC struct{}

// Location implements [Zone].
func (UTC) Location() *time.Location { return time.UTC }

// Layouts implements [Zone]: there is no other.
func (UTC) Layouts() []string { return nil }

// Date is a day as most providers write it, "2026-08-08". Time is an instant, "2025-01-15T10:30:00.000Z";
// without a zone it is UTC.
type (
	Date = DateIn[UTC]
	Time = TimeIn[UTC]
)

// DateIn is a day, as a provider wrote it, in any spelling of ISO 8601 or of its zone.
// Decoding keeps the text and never fails; using a text that is no
// date fails. Compare days by their Time method, not by their texts.
//
// It is a good argument of tx.Exec: a date or text column gets the day as
// 2026-08-08, a timestamptz column the day's first instant in the zone, and
// any column NULL for an empty one. With pgx's simple protocol, which cannot
// see a column's type, pass Time() to a timestamptz column. It can be scanned from
// such columns, and is then spelled 2026-08-08.
type DateIn[Z Zone] string

// TimeIn is an instant, as a provider wrote it, in any spelling of ISO 8601 or of its zone. A day without
// a time is its first instant, where the zone has such a layout. Decoding keeps the text and never fails; using a text
// that is no time fails. Use string(t) to store the text as it was sent.
//
// It is a good argument of tx.Exec: a timestamptz column gets the
// instant, a date or timestamp column the day and the time that the calendar and the clock in
// the zone showed, a text column RFC 3339, and any column NULL for an empty
// one. It can be scanned from such columns, and is then spelled as in RFC
// 3339; with database/sql, use a timestamptz column for it.
type TimeIn[Z Zone] string

func zoneOf[Z Zone]() *time.Location {
	var zone Z
	return zone.Location()
}

// The spellings of ISO 8601, without and with a time zone. Parsing takes a fraction of
// a second after any seconds.
var (
	localLayouts = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05"}
	zonedLayouts = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07"}
)

func readIn[Z Zone](text string) (t time.Time, ok bool) {
	var zone Z
	for _, layouts := range [][]string{localLayouts, zone.Layouts()} {
		for _, layout := range layouts {
			if !mayBe(text, layout) {
				continue
			}
			if t, err := time.Parse(layout, text); err == nil {
				return shownIn[Z](t), true
			}
		}
	}
	text = strings.Replace(strings.ToUpper(text), " ", "T", 1)
	for _, layout := range slices.Concat(zonedLayouts, localLayouts[1:]) {
		if t, err := time.Parse(layout, text); err == nil && layout == localLayouts[1] {
			return shownIn[Z](t), true
		} else if err == nil {
			return t.In(zone.Location()), true
		}
	}
	return time.Time{}, false
}

// mayBe spares time.Parse making errors: a text has its separators where its
// layout has them, and is longer only after a time.
func mayBe(text, layout string) bool {
	const day = len("2006-01-02")
	switch {
	case len(text) < len(layout) || text[2] != layout[2] && layout[2] == '/':
		return false
	case len(layout) == day:
		return len(text) == day
	}
	return text[day] == layout[day]
}

// shownIn returns the moment at which the calendar and the clock in the zone showed the time that t
// shows in its own zone.
func shownIn[Z Zone](t time.Time) time.Time {
	at := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zoneOf[Z]())
	if at.Day() != t.Day() {
		at = at.Add(time.Hour) // summer time began: the hour after midnight was left out
	}
	return at
}

// Time returns the day's first instant in the zone. An empty Date is an error,
// as is a text that is no date.
func (d DateIn[Z]) Time() (time.Time, error) {
	t, err := time.Parse(time.DateOnly, string(d))
	ok := err == nil
	if !ok {
		t, ok = readIn[Z](string(d))
	}
	if !ok {
		return time.Time{}, errors.New("value: the text is not a date in a spelling that is known: keep it as text, string(d)")
	}
	return shownIn[Z](dayOf(t)), nil
}

// IsZero reports whether there is no date.
func (d DateIn[Z]) IsZero() bool { return d == "" }

// Time returns the instant, in the zone. An empty DateTime is an
// error, as is a text that is no time.
func (d TimeIn[Z]) Time() (time.Time, error) {
	t, ok := readIn[Z](string(d))
	if !ok {
		return time.Time{}, errors.New("value: the text is not a time in a spelling that is known: keep it as text, string(d)")
	}
	return t, nil
}

// IsZero reports whether there is no time.
func (d TimeIn[Z]) IsZero() bool { return d == "" }

var errInfinity = errors.New("value: infinity is no date of an event: select another column, or scan into a pgtype")

// Value implements [driver.Valuer]: the day as 2026-08-08, or NULL.
func (d DateIn[Z]) Value() (driver.Value, error) {
	at, err := d.TimestamptzValue()
	if !at.Valid {
		return nil, err
	}
	return at.Time.Format(time.DateOnly), nil
}

// TextValue implements [pgtype.TextValuer], without which pgx would send a text
// that is no date, and Postgres guess: "today" is a date for it.
func (d DateIn[Z]) TextValue() (pgtype.Text, error) { return textOf(d.Value()) }

// DateValue implements [pgtype.DateValuer].
func (d DateIn[Z]) DateValue() (pgtype.Date, error) {
	at, err := d.TimestamptzValue()
	return pgtype.Date{Time: dayOf(at.Time), Valid: at.Valid}, err
}

// dayOf returns midnight, in UTC, of the day that t shows.
func dayOf(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (d DateIn[Z]) TimestamptzValue() (pgtype.Timestamptz, error) {
	if d == "" {
		return pgtype.Timestamptz{}, nil
	}
	t, err := d.Time()
	return pgtype.Timestamptz{Time: t, Valid: err == nil}, err
}

// TimestampValue implements [pgtype.TimestampValuer]: midnight.
func (d DateIn[Z]) TimestampValue() (pgtype.Timestamp, error) {
	day, err := d.DateValue()
	return pgtype.Timestamp{Time: day.Time, Valid: day.Valid}, err
}

// Scan implements [database/sql.Scanner]. NULL is an empty Date. An instant is its day in
// the zone, unless it is midnight in UTC, which is how a date column comes.
func (d *DateIn[Z]) Scan(src any) error {
	at, isTime := src.(time.Time)
	if !isTime {
		return scanText((*string)(d), src)
	}
	if utc := at.UTC(); utc != utc.Truncate(24*time.Hour) {
		at = at.In(zoneOf[Z]())
	} else {
		at = utc
	}
	*d = DateIn[Z](at.Format(time.DateOnly))
	return nil
}

// ScanDate implements [pgtype.DateScanner].
func (d *DateIn[Z]) ScanDate(v pgtype.Date) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time, time.DateOnly)
}

// ScanTimestamp implements [pgtype.TimestampScanner]: the day that the clock
// showed.
func (d *DateIn[Z]) ScanTimestamp(v pgtype.Timestamp) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time, time.DateOnly)
}

// ScanTimestamptz implements [pgtype.TimestamptzScanner]: the day in the zone.
func (d *DateIn[Z]) ScanTimestamptz(v pgtype.Timestamptz) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time.In(zoneOf[Z]()), time.DateOnly)
}

// Value implements [driver.Valuer]: the instant as RFC 3339, or NULL.
func (d TimeIn[Z]) Value() (driver.Value, error) {
	at, err := d.TimestamptzValue()
	if !at.Valid {
		return nil, err
	}
	return at.Time.Format(time.RFC3339Nano), nil
}

// TextValue implements [pgtype.TextValuer].
func (d TimeIn[Z]) TextValue() (pgtype.Text, error) { return textOf(d.Value()) }

func textOf(v driver.Value, err error) (pgtype.Text, error) {
	text, ok := v.(string)
	return pgtype.Text{String: text, Valid: ok}, err
}

// DateValue implements [pgtype.DateValuer]: the day in the zone.
func (d TimeIn[Z]) DateValue() (pgtype.Date, error) {
	at, err := d.TimestamptzValue()
	return pgtype.Date{Time: dayOf(at.Time), Valid: at.Valid}, err
}

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (d TimeIn[Z]) TimestamptzValue() (pgtype.Timestamptz, error) {
	if d == "" {
		return pgtype.Timestamptz{}, nil
	}
	t, err := d.Time()
	return pgtype.Timestamptz{Time: t, Valid: err == nil}, err
}

// TimestampValue implements [pgtype.TimestampValuer]: the time that a clock in the zone
// showed.
func (d TimeIn[Z]) TimestampValue() (pgtype.Timestamp, error) {
	at, err := d.TimestamptzValue()
	return pgtype.Timestamp{Time: clockOf(at.Time), Valid: at.Valid}, err
}

// clockOf returns, in UTC, the time that t shows in its own zone.
func clockOf(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// Scan implements [database/sql.Scanner]. NULL is an empty DateTime.
func (d *TimeIn[Z]) Scan(src any) error {
	at, isTime := src.(time.Time)
	if !isTime {
		return scanText((*string)(d), src)
	}
	return d.ScanTimestamptz(pgtype.Timestamptz{Time: at, Valid: true})
}

// ScanDate implements [pgtype.DateScanner]: the day without a time, which is its
// first instant in the zone.
func (d *TimeIn[Z]) ScanDate(v pgtype.Date) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time, time.DateOnly)
}

// ScanTimestamp implements [pgtype.TimestampScanner]: when a clock in the zone
// showed it.
func (d *TimeIn[Z]) ScanTimestamp(v pgtype.Timestamp) error {
	return scanTime(d, v.Valid, v.InfinityModifier, shownIn[Z](v.Time), time.RFC3339Nano)
}

// ScanTimestamptz implements [pgtype.TimestamptzScanner].
func (d *TimeIn[Z]) ScanTimestamptz(v pgtype.Timestamptz) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time.In(zoneOf[Z]()), time.RFC3339Nano)
}

func scanTime[T ~string](into *T, valid bool, infinity pgtype.InfinityModifier, at time.Time, layout string) error {
	switch {
	case !valid:
		*into = ""
	case infinity != pgtype.Finite:
		return errInfinity
	default:
		*into = T(at.Format(layout))
	}
	return nil
}

func scanText(into *string, src any) error {
	switch src := src.(type) {
	case nil:
		*into = ""
	case string:
		*into = src
	case []byte:
		*into = string(src)
	default:
		return fmt.Errorf("value: a %T is not scanned into a date or a time: select a column of type date, timestamptz or text", src)
	}
	return nil
}
