package value

import (
	"database/sql"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// There is no TextValue: with it, pgx would send the text of a T that its column
// refuses, and Postgres guess.

// NumericValue implements [pgtype.NumericValuer], and makes an argument for
// code that wants a pgtype.Numeric, as sqlc writes it. So do the methods below
// for their types. They ask T's own method of that name, if it has one, and else
// convert the result of [Optional.Value].
func (v Optional[T]) NumericValue() (n pgtype.Numeric, err error) {
	if own, ok := any(v.v).(pgtype.NumericValuer); ok && v.state == present {
		return own.NumericValue()
	}
	value, err := v.Value()
	switch value := value.(type) {
	case int64:
		return pgtype.Numeric{Int: big.NewInt(value), Valid: true}, err
	case float64:
		return n, fits[T](n.Scan(strconv.FormatFloat(value, 'f', -1, 64)))
	}
	return n, scanned[T](&n, value, err)
}

// DateValue implements [pgtype.DateValuer].
func (v Optional[T]) DateValue() (pgtype.Date, error) {
	if own, ok := any(v.v).(pgtype.DateValuer); ok && v.state == present {
		return own.DateValue()
	}
	clock, err := v.clock()
	return pgtype.Date(clock), err
}

// TimestamptzValue implements [pgtype.TimestamptzValuer]. A T that is a day
// knows in which time zone the day begins, which its text does not say.
func (v Optional[T]) TimestamptzValue() (pgtype.Timestamptz, error) {
	if own, ok := any(v.v).(pgtype.TimestamptzValuer); ok && v.state == present {
		return own.TimestamptzValue()
	}
	value, err := v.Value()
	if err != nil || value == nil {
		return pgtype.Timestamptz{}, err
	}
	switch t := value.(type) {
	case time.Time:
		return pgtype.Timestamptz{Time: t, Valid: true}, nil
	case string:
		if at, err := time.Parse(time.RFC3339, t); err == nil {
			return pgtype.Timestamptz{Time: at, Valid: true}, nil
		}
	}
	return pgtype.Timestamptz{}, fmt.Errorf("value: %T is not an instant with a time zone: parse it before it is stored as one", v.v)
}

// TimestampValue implements [pgtype.TimestampValuer]: the time that the clock showed, in
// whichever zone, as Postgres reads a text.
func (v Optional[T]) TimestampValue() (pgtype.Timestamp, error) {
	if own, ok := any(v.v).(pgtype.TimestampValuer); ok && v.state == present {
		return own.TimestampValue()
	}
	return v.clock()
}

// clock returns the day and the time that the calendar and the clock showed.
func (v Optional[T]) clock() (pgtype.Timestamp, error) {
	value, err := v.Value()
	if err != nil || value == nil {
		return pgtype.Timestamp{}, err
	}
	at, ok := value.(time.Time)
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if text, isText := value.(string); isText && !ok {
			at, err = time.Parse(layout, text)
			ok = err == nil
		}
	}
	if !ok {
		return pgtype.Timestamp{}, fmt.Errorf("value: %T is not a time: parse it before it is stored as one", v.v)
	}
	return pgtype.Timestamp{Time: clockOf(at), Valid: true}, nil
}

// Int64Value implements [pgtype.Int64Valuer].
func (v Optional[T]) Int64Value() (n pgtype.Int8, err error) {
	value, err := v.Value()
	return n, scanned[T](&n, value, err)
}

// BoolValue implements [pgtype.BoolValuer].
func (v Optional[T]) BoolValue() (b pgtype.Bool, err error) {
	value, err := v.Value()
	return b, scanned[T](&b, value, err)
}

// ScanDate implements [pgtype.DateScanner].
func (v *Optional[T]) ScanDate(d pgtype.Date) error {
	if own, ok := any(&v.v).(pgtype.DateScanner); ok && d.Valid {
		return v.scanned(own.ScanDate(d))
	}
	return v.scan(d.Value())
}

// ScanTimestamp implements [pgtype.TimestampScanner].
func (v *Optional[T]) ScanTimestamp(t pgtype.Timestamp) error {
	if own, ok := any(&v.v).(pgtype.TimestampScanner); ok && t.Valid {
		return v.scanned(own.ScanTimestamp(t))
	}
	return v.scan(t.Value())
}

// ScanTimestamptz implements [pgtype.TimestamptzScanner].
func (v *Optional[T]) ScanTimestamptz(t pgtype.Timestamptz) error {
	if own, ok := any(&v.v).(pgtype.TimestamptzScanner); ok && t.Valid {
		return v.scanned(own.ScanTimestamptz(t))
	}
	return v.scan(t.Value())
}

func (v *Optional[T]) scan(src any, err error) error {
	if err != nil {
		return err
	}
	return v.Scan(src)
}

// scanned sets the state of v once its T was scanned.
func (v *Optional[T]) scanned(err error) error {
	v.state = present
	if err != nil {
		*v = Optional[T]{}
	}
	return err
}

func scanned[T any](into sql.Scanner, value any, err error) error {
	if err != nil {
		return err
	}
	return fits[T](into.Scan(value))
}

func fits[T any](err error) error {
	if err == nil {
		return nil
	}
	var v T
	return fmt.Errorf("value: %T does not fit the column, convert it before it is stored: %w", v, err)
}
