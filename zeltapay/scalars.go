package zeltapay

import "github.com/paghooks/paghooks/idem/scalar"

// Cents is [scalar.Cents], an amount of money in the smallest unit of its
// currency: 1500 is 15.00 USD. Zelta Pay documents whole cents as a JSON number.
type Cents = scalar.Cents

// Time is [scalar.Time], a point in time as Zelta Pay wrote it,
// "2025-01-15T10:30:00.000Z". One without a zone is UTC, the zone of every
// documented sample.
type Time = scalar.Time
