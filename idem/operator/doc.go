// Package operator runs the operations on stored events for a person, and records them:
// who did what to which events, why, and with what result. See [Operator].
//
//	ana := operator.New(inbox, "ana@shop")
//	shown, err := ana.Choose(ctx, idem.Filter{Types: []string{"PAYMENT_RECEIVED"}})
//	… // show them, and ask
//	sum, err := ana.Replay(ctx, shown, "the order is there now")
//
// # Files
//
//	operator   // who acts, and the audit trail
//	act        // replay, requeue, discard
//	rescope    // an account that gets another scope, or a source another name
package operator
