package optional

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
)

// Value implements [driver.Valuer], so that a Value can be an argument of
// tx.Exec: it is NULL when it holds nothing, else the result of T's own Value method
// if there is one, else the basic value of T (a string, a number, a boolean). A T that is
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

// Scan implements [sql.Scanner]. NULL is null, never absent. Anything else is
// read by T's own Scan method, or else as database/sql reads it into a T.
func (v *Value[T]) Scan(src any) error {
	var column sql.Null[T]
	if err := column.Scan(src); err != nil {
		return fmt.Errorf("optional: the column does not fit a %T: %w", column.V, err)
	}
	*v = Null[T]()
	if column.Valid {
		*v = Of(column.V)
	}
	return nil
}
