// Package value has the types of the fields of events: fields that may be null or absent, exact
// numbers, days, instants, and numbers and texts that are sent in several spellings. The packages
// that gen makes use them.
//
// # Read a field that may be null or absent
//
//	if day, ok := e.Payment.PaymentDate.Get(); ok { … } // it has a value
//	name := e.Payment.Description.Or("")                 // or a default
//	e.Payment.CreditCard.IsNull()                        // sent as null
//	e.Payment.CreditCard.IsZero()                        // not sent
//
// # Store a field
//
// All types are arguments of tx.Exec as they are. An [Optional] becomes NULL when it holds nothing:
//
//	tx.Exec(ctx, `insert into payments (charge_id, paid_on) values ($1, $2) on conflict do nothing`, e.Payment.ID, e.Payment.PaymentDate)
//
// # Build a field, in tests and requests
//
//	value.Of("pay_123")
//	value.Null[string]()
//
// # Single values
//
// No value is ever a float.
//
// | In a spec                            | Go        |
// |--------------------------------------|-----------|
// | number (also float, double, decimal) | [Decimal] |
// | number (percent)                     | [Percent] |
// | integer (also int32, int64)          | [Int]     |
// | integer (cents)                      | [Cents]   |
// | string (date)                        | [Date]    |
// | string (date-time)                   | [Time]    |
// | string (text)                        | [Text]    |
package value
