// Package optional tells three cases of JSON apart: a field that has a
// value, a field that is null, and a field that is not there.
//
// # Read a field
//
//	if day, ok := e.Payment.PaymentDate.Get(); ok { … } // it has a value
//	name := e.Payment.Description.Or("")                 // or a default
//	e.Payment.CreditCard.IsNull()                        // sent as null
//	e.Payment.CreditCard.IsZero()                        // not sent
//
// # Store a field
//
// A [Value] is an argument of tx.Exec as it is. It becomes NULL when it holds
// nothing:
//
//	tx.Exec(ctx, `insert into payments (charge_id, paid_on) values ($1, $2) on conflict do nothing`, e.Payment.ID, e.Payment.PaymentDate)
//
// # Build a field, in tests and requests
//
//	optional.Of("pay_123")
//	optional.Null[string]()
package optional
