// Package idemcmd is the command idem, which shows and processes an application's
// stored webhook events. It needs no Go on the night when something is wrong.
//
// The prebuilt command, github.com/paghooks/paghooks/idem/cmd/idem, has every verb
// but replay, and needs only the URL of the database. Replay runs the
// application's handlers, and so is part of a program of ten lines:
//
//	func main() { idemcmd.Main(receiver) }
//
//	// receiver is also what the application serves.
//	func receiver(pool *pgxpool.Pool) idem.Receiver {
//		events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//		events.OnPaymentReceived(…)
//		return idem.NewInbox(pool, events)
//	}
//
// Such a program also knows the receiver's settings. The prebuilt command knows
// only their defaults: it prunes after 45 days, unless -retention says otherwise,
// and discards bodies whatever KeepPayloads is.
//
// # Verbs
//
// Run idem help VERB for all about one.
//
//	stats       how many events are not done, by state, and how old the oldest is
//	list        events that are not done, the newest first
//	show        one event, with its error; its body is hidden
//	blocked     entities whose events wait for an earlier one
//	audit       who did what to which events
//	watch       stats, again and again
//	requeue     have the workers of an inbox process events again
//	replay      process events here, with the application's handlers
//	discard     give events up
//	prune       forget old events
//	rescope     move the events of an account to another scope or source
//	migrate     create or update the tables
//	doctor      what is wrong with the database or the events, and what to do
//
// # Choosing events
//
// The flags -state, -account, -type, -entity, -id, -from and -until are the fields
// of [idem.Filter]: States, Scopes, Types, Keys, IDs, ReceivedFrom and
// ReceivedUntil. Without -state they choose among events that are parked or
// unhandled. Ids may also follow the verb. Quote those that contain an &.
//
// # Before something is changed
//
// Before an action changes more than one event, the command prints how many, the
// first few, and what would happen, and asks; -yes skips the question. The action is
// bound to those events: what comes in between is left alone, and the command says
// so. Prune asks before it forgets a single event. Without a
// terminal it changes nothing unless -yes is given. With -dry-run it only shows what
// would happen. Actions are in the audit trail, under the name that -as gives or
// else user@host.
//
// # Output
//
// Text is for people. With -json, stdout has one object per line, whose names are
// those of Go: an account is its scope, an entity its key. Progress is written to
// stderr if that is a terminal. A body is printed only by show -payload, which is
// recorded.
//
// # Exit status
//
//	0  success
//	1  failure: also if a replayed event failed or none had a handler, or if the doctor found an error
//	2  wrong usage; nothing was changed
//	3  no event matched
//
// Ctrl-C lets the event that is being processed finish; run the command again for
// the rest. A second Ctrl-C ends the program immediately, as kill -9 does: the
// event's transaction is rolled back, and nothing is done twice.
package idemcmd
