package asaas

import "github.com/paghooks/paghooks/idem/scalar"

// Decimal is [scalar.Decimal], an exact decimal number.
type Decimal = scalar.Decimal

// Money is an amount in reais: 10.50 is R$ 10,50. It is negative where money
// leaves, as in INTERNAL_TRANSFER_DEBIT. No amount of Asaas's has a fraction of a
// cent.
type Money = Decimal

// Percent is [scalar.Percent]: 2.5 is 2.5 %.
type Percent = scalar.Percent

// Int is [scalar.Int], a whole number in any spelling.
type Int = scalar.Int

// Text is [scalar.Text], a text that Asaas sometimes sends as a number: the id of
// a bill, the number of a bank.
type Text = scalar.Text

// ParseDecimal reads a number in any spelling that JSON has: -3.5, 10.00, 1e2.
func ParseDecimal(s string) (Decimal, error) { return scalar.ParseDecimal(s) }

// Cents returns an amount of so many cents: Cents(1050) is R$ 10.50. It panics
// where the amount in reais has more than 18 digits.
func Cents(n int64) Decimal { return scalar.OfCents(n) }

// PercentOf makes a percentage of a number: 2.5 is 2.5 %.
func PercentOf(n Decimal) Percent { return scalar.PercentOf(n) }
