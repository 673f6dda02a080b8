package asaas

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Date is a day, as Asaas wrote it: "2026-08-08", but also "08/08/2026" or
// "2026-08-08T03:00:00+0000", because the spelling differs between fields and
// changes. Decoding keeps the text and never fails; using a text that is no
// date fails. Compare days by [Date.Time], not by their texts.
//
// A Date is a good argument of tx.Exec: a date or text column gets the day as
// 2026-08-08, a timestamptz column the day's first instant in Brasília, and
// any column NULL for an empty Date. With pgx's simple protocol, which cannot
// see a column's type, pass Time() to a timestamptz column. It can be scanned from
// such columns, and is then spelled 2026-08-08.
type Date string

// DateTime is an instant, as Asaas wrote it: "2026-08-08 20:45:13", which is
// Brasília time, or "2026-08-08T23:45:13Z". A day without a time is its first
// instant in Brasília. Decoding keeps the text and never fails; using a text
// that is no time fails.
//
// A DateTime is a good argument of tx.Exec: a timestamptz column gets the
// instant, a date or timestamp column the day and the time that the calendar and the clock in
// Brasília showed, a text column RFC 3339, and any column NULL for an empty
// DateTime. It can be scanned from such columns, and is then spelled as in RFC
// 3339; with database/sql, use a timestamptz column for it.
type DateTime string

// Brasilia returns the time zone of every time that Asaas writes without one.
func Brasilia() *time.Location { return brasilia() }

var brasilia = sync.OnceValue(func() *time.Location {
	if loc, err := time.LoadLocation("America/Sao_Paulo"); err == nil {
		return loc
	}
	return time.FixedZone("-03", -3*60*60) // no time zone data; Brazil has had no summer time since 2019
})

// The spellings seen, without and with a time zone. Parsing takes a fraction of
// a second after any seconds.
var (
	localLayouts = []string{
		"2006-01-02",
		"2006-01-02 15:04:05",
		"02/01/2006",
		"02/01/2006 15:04:05",
		"2006-01-02T15:04:05",
	}
	zonedLayouts = []string{
		"2006-01-02T15:04:05Z07:00",
		"2006-01-02T15:04:05Z0700",
	}
)

func parseTime(text string) (t time.Time, ok bool) {
	for _, layout := range localLayouts {
		if !mayBe(text, layout) {
			continue
		}
		if t, err := time.Parse(layout, text); err == nil {
			return inBrasilia(t), true
		}
	}
	for _, layout := range zonedLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.In(Brasilia()), true
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

// inBrasilia returns the moment at which the calendar and the clock in Brasília showed the time that t
// shows in its own zone.
func inBrasilia(t time.Time) time.Time {
	at := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), Brasilia())
	if at.Day() != t.Day() {
		at = at.Add(time.Hour) // summer time began, until 2018: the hour after midnight was left out
	}
	return at
}

// Time returns the day's first instant in Brasília. An empty Date is an error,
// as is a text that is no date.
func (d Date) Time() (time.Time, error) {
	t, ok := parseTime(string(d))
	if !ok {
		return time.Time{}, errors.New("asaas: the text is not a date in a spelling that is known: keep it as text, string(d)")
	}
	year, month, day := t.Date()
	return inBrasilia(time.Date(year, month, day, 0, 0, 0, 0, time.UTC)), nil
}

// IsZero reports whether there is no date.
func (d Date) IsZero() bool { return d == "" }

// Time returns the instant, in Brasília's time zone. An empty DateTime is an
// error, as is a text that is no time.
func (d DateTime) Time() (time.Time, error) {
	t, ok := parseTime(string(d))
	if !ok {
		return time.Time{}, errors.New("asaas: the text is not a time in a spelling that is known: keep it as text, string(d)")
	}
	return t, nil
}

// IsZero reports whether there is no time.
func (d DateTime) IsZero() bool { return d == "" }

var errInfinity = errors.New("asaas: infinity is no date of an event: select another column, or scan into a pgtype")

// Value implements [driver.Valuer]: the day as 2026-08-08, or NULL.
func (d Date) Value() (driver.Value, error) {
	if d == "" {
		return nil, nil
	}
	t, err := d.Time()
	if err != nil {
		return nil, err
	}
	return t.Format(time.DateOnly), nil
}

// DateValue implements [pgtype.DateValuer].
func (d Date) DateValue() (pgtype.Date, error) { return DateTime(d).DateValue() }

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (d Date) TimestamptzValue() (pgtype.Timestamptz, error) {
	if d == "" {
		return pgtype.Timestamptz{}, nil
	}
	t, err := d.Time()
	return pgtype.Timestamptz{Time: t, Valid: err == nil}, err
}

// TimestampValue implements [pgtype.TimestampValuer]: midnight.
func (d Date) TimestampValue() (pgtype.Timestamp, error) {
	day, err := d.DateValue()
	return pgtype.Timestamp{Time: day.Time, Valid: day.Valid}, err
}

// Scan implements [database/sql.Scanner]. NULL is an empty Date. An instant is its day in
// Brasília, unless it is midnight in UTC, which is how a date column comes.
func (d *Date) Scan(src any) error {
	at, isTime := src.(time.Time)
	if !isTime {
		return scanText((*string)(d), src)
	}
	if utc := at.UTC(); utc != utc.Truncate(24*time.Hour) {
		at = at.In(Brasilia())
	} else {
		at = utc
	}
	*d = Date(at.Format(time.DateOnly))
	return nil
}

// ScanDate implements [pgtype.DateScanner].
func (d *Date) ScanDate(v pgtype.Date) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time, time.DateOnly)
}

// ScanTimestamp implements [pgtype.TimestampScanner]: the day that the clock
// showed.
func (d *Date) ScanTimestamp(v pgtype.Timestamp) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time, time.DateOnly)
}

// ScanTimestamptz implements [pgtype.TimestamptzScanner]: the day in Brasília.
func (d *Date) ScanTimestamptz(v pgtype.Timestamptz) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time.In(Brasilia()), time.DateOnly)
}

// Value implements [driver.Valuer]: the instant as RFC 3339, or NULL.
func (d DateTime) Value() (driver.Value, error) {
	if d == "" {
		return nil, nil
	}
	t, err := d.Time()
	if err != nil {
		return nil, err
	}
	return t.Format(time.RFC3339Nano), nil
}

// DateValue implements [pgtype.DateValuer]: the day in Brasília.
func (d DateTime) DateValue() (pgtype.Date, error) {
	if d == "" {
		return pgtype.Date{}, nil
	}
	t, err := d.Time()
	year, month, day := t.Date()
	return pgtype.Date{Time: time.Date(year, month, day, 0, 0, 0, 0, time.UTC), Valid: err == nil}, err
}

// TimestamptzValue implements [pgtype.TimestamptzValuer].
func (d DateTime) TimestamptzValue() (pgtype.Timestamptz, error) {
	if d == "" {
		return pgtype.Timestamptz{}, nil
	}
	t, err := d.Time()
	return pgtype.Timestamptz{Time: t, Valid: err == nil}, err
}

// TimestampValue implements [pgtype.TimestampValuer]: the time that the clock in Brasília
// showed.
func (d DateTime) TimestampValue() (pgtype.Timestamp, error) {
	if d == "" {
		return pgtype.Timestamp{}, nil
	}
	t, err := d.Time()
	_, offset := t.Zone()
	return pgtype.Timestamp{Time: t.UTC().Add(time.Duration(offset) * time.Second), Valid: err == nil}, err
}

// Scan implements [database/sql.Scanner]. NULL is an empty DateTime.
func (d *DateTime) Scan(src any) error {
	at, isTime := src.(time.Time)
	if !isTime {
		return scanText((*string)(d), src)
	}
	return d.ScanTimestamptz(pgtype.Timestamptz{Time: at, Valid: true})
}

// ScanDate implements [pgtype.DateScanner]: the day without a time, which is its
// first instant in Brasília.
func (d *DateTime) ScanDate(v pgtype.Date) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time, time.DateOnly)
}

// ScanTimestamp implements [pgtype.TimestampScanner]: when the clock in Brasília
// showed it.
func (d *DateTime) ScanTimestamp(v pgtype.Timestamp) error {
	return scanTime(d, v.Valid, v.InfinityModifier, inBrasilia(v.Time), time.RFC3339Nano)
}

// ScanTimestamptz implements [pgtype.TimestamptzScanner].
func (d *DateTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	return scanTime(d, v.Valid, v.InfinityModifier, v.Time.In(Brasilia()), time.RFC3339Nano)
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
		return fmt.Errorf("asaas: a %T is not scanned into a date or a time: select a column of type date, timestamptz or text", src)
	}
	return nil
}
