// Package decimals converts amounts to and from github.com/shopspring/decimal, for a shop whose code
// holds money in that type. Copy the lines: paghooks does not depend on it. No float is involved.
package decimals

import (
	"github.com/shopspring/decimal"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// Of returns an amount of an event. It is exact.
func Of(m asaas.Money) decimal.Decimal { return decimal.RequireFromString(m.String()) }

// Money returns an amount of the shop's. It is exact; the error says that d has more than 18 digits. It does
// not round: round d to cents before, for a request to Asaas.
func Money(d decimal.Decimal) (asaas.Money, error) { return value.ParseDecimal(d.String()) }
