package optional

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Value implements [driver.Valuer], so that a Value can be an argument of
// tx.Exec: it is NULL when it holds nothing, else what T's own Value method
// returns, else what T is made of (a string, a number, a boolean). A T that is
// a struct or a slice without that method is an error: pass its fields.
func (v Value[T]) Value() (driver.Value, error) {
	if v.state != present {
		return nil, nil
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.v)
	if err != nil {
		return nil, fmt.Errorf("optional: %T is not a column's value, pass one of its fields: %w", v.v, err)
	}
	return value, nil
}

// TimestamptzValue implements [pgtype.TimestamptzValuer]. pgx asks it for
// columns of type timestamptz: a T that is a day knows in which time zone the
// day begins, which its text does not say.
func (v Value[T]) TimestamptzValue() (pgtype.Timestamptz, error) {
	if v.state != present {
		return pgtype.Timestamptz{}, nil
	}
	if t, ok := any(v.v).(pgtype.TimestamptzValuer); ok {
		return t.TimestamptzValue()
	}
	at, err := v.instant()
	return pgtype.Timestamptz{Time: at, Valid: err == nil}, err
}

// instant is the time that a T stands for, where pgx does not know T.
func (v Value[T]) instant() (time.Time, error) {
	value, err := v.Value()
	if err != nil {
		return time.Time{}, err
	}
	switch t := value.(type) {
	case time.Time:
		return t, nil
	case string:
		if at, err := time.Parse(time.RFC3339, t); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("optional: %T is not an instant with a time zone: parse it before it is stored as one", v.v)
}
