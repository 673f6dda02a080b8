// Package operator runs the operations on stored events for a person, and records them:
// the actor, the action, its events, reason and result. See [Operator]. [Operator.Lookup]
// says why an event is not done.
//
//	ana := operator.New(inbox, "ana@shop")
//	plan, err := ana.PlanReplay(ctx, idem.Filter{Types: []string{"PAYMENT_RECEIVED"}})
//	… // show it, and ask
//	result, err := plan.Do(ctx, "the order is there now")
//
// Reading is not recorded, and needs no name: operator.New(inbox, "").Blocked(ctx, 10).
//
// # Files
//
//	operator // who acts, and the record of an action while it runs
//	plan     // what an action would do to which events, for a person to confirm
//	act      // replay, requeue, discard, acknowledge, erase, readmit, prune
//	move     // an account that gets another scope, a source another name; events that another program has processed
//	trail    // the audit trail, by action and by event; stopping an action
//	list     // events in pages, by an id, by an entity, by a part of an id; entities that wait; conflicts; counts
//	lookup   // an event, and why it is not done
package operator
