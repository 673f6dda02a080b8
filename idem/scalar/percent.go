package scalar

import (
	"database/sql/driver"

	"github.com/jackc/pgx/v5/pgtype"
)

// Percent is a percentage: 2.5 is 2.5 %. It is no amount, and cannot be added to
// one: [Percent.Of] takes it of one.
type Percent struct{ n Decimal }

// PercentOf makes a percentage of a number: 2.5 is 2.5 %.
func PercentOf(n Decimal) Percent { return Percent{n} }

// Of returns that part of an amount, exactly: round it with [Decimal.Round]. It
// panics where [Decimal.Mul] does.
func (p Percent) Of(amount Decimal) Decimal {
	return amount.Mul(p.n).Mul(Decimal{coef: 1, scale: 2})
}

// Decimal returns the number: 2.5 for 2.5 %.
func (p Percent) Decimal() Decimal { return p.n }

// IsZero reports whether it is 0 %.
func (p Percent) IsZero() bool { return p.n.IsZero() }

// Equal is ==, for go-cmp.
func (p Percent) Equal(q Percent) bool { return p == q }

// String writes the number without a sign: "2.50".
func (p Percent) String() string { return p.n.String() }

// UnmarshalJSON reads the spellings of a [Decimal].
func (p *Percent) UnmarshalJSON(data []byte) error { return p.n.UnmarshalJSON(data) }

// MarshalJSON writes a JSON number.
func (p Percent) MarshalJSON() ([]byte, error) { return p.n.MarshalJSON() }

// Scan implements [database/sql.Scanner], as [Decimal.Scan] does.
func (p *Percent) Scan(src any) error { return p.n.Scan(src) }

// Value implements [driver.Valuer]: a numeric.
func (p Percent) Value() (driver.Value, error) { return p.n.Value() }

// NumericValue implements [pgtype.NumericValuer].
func (p Percent) NumericValue() (pgtype.Numeric, error) { return p.n.NumericValue() }

// ScanNumeric implements [pgtype.NumericScanner].
func (p *Percent) ScanNumeric(n pgtype.Numeric) error { return p.n.ScanNumeric(n) }
