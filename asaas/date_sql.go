package asaas

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

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
