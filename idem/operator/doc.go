// Package operator runs the operations on stored events for a person, and records them:
// the actor, the action, its events, reason and result. See [Operator]. [Operator.Lookup]
// says why an event is not done.
//
//	ana := operator.New(inbox, "ana@shop")
//	shown, err := ana.Choose(ctx, idem.Filter{Types: []string{"PAYMENT_RECEIVED"}})
//	… // show them, and ask
//	sum, err := ana.Replay(ctx, shown, "the order is there now")
//
// Reading is not recorded, and needs no name: operator.New(inbox, "").Blocked(ctx, 10).
//
// # Files
//
//	sign       // an action that runs gives signs of life, and ends when somebody stops it
//	operator   // who acts, and the record of an action
//	trail      // the audit trail, by action and by event
//	act        // replay, requeue, discard, acknowledge
//	stop       // stop an action
//	lookup portuguese why // an event, and why it is not done
//	find page  // events by an id, by an entity, in pages
//	search     // events by a part of an id, and by fields of bodies
//	state      // what somebody on call looks at first
//	blocked conflicts // entities that wait; ids that came with two bodies
//	erase      // what is stored of events beyond the fact that they came
//	rescope    // an account that gets another scope, or a source another name
//	import     // events that another program has processed
package operator
