// Package idemcmd is the command idem, which shows and processes an application's
// stored webhook events. A host needs no Go to run it.
//
// The prebuilt command, github.com/paghooks/paghooks/idem/cmd/idem, has every verb
// but replay and rerun, and needs only the URL of the database. These run the
// application's handlers, and so are part of a program of ten lines:
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
// Such a program also has the receiver's settings. The prebuilt command has only their
// defaults: it prunes after 45 days, unless -retention is given, and deletes the bodies of
// discarded events, even if the application sets KeepPayloads.
//
// # Verbs
//
// Run idem help VERB for the documentation of one.
//
//	stats       how many events are not done, by state, and how old the oldest is
//	list        events that are not done, the newest first
//	show        one event, why it is not done, and its last errors; or what became of an entity
//	blocked     entities whose events wait for an earlier one
//	conflicts   events that came again with another body
//	audit       who did what to which events
//	console     a page with all of this, read-only, for this machine alone
//	tail        each delivery as it comes, with its answer, also those that are refused
//	requeue     have the workers of an inbox process events again
//	replay      process events here, with the application's handlers
//	rerun       run the handler of a done event once more, on purpose
//	pause       have no event begin for a time: of a source, a type or an entity
//	resume      end a pause before its time
//	acknowledge take note of events that fail or are parked: they make health red no more
//	discard     give events up
//	stop        ask a running action to end
//	readmit     have messages of a relay that were set aside verified again
//	erase       delete the bodies, errors and traces of events, for a person who asks for it
//	prune       forget old events
//	rescope     move the events of an account to another scope or source
//	migrate     create or update the tables
//	doctor      what is wrong, and what to do
//
// # Choosing events
//
// The flags -state, -account, -type, -entity, -id, -failed, -since and -until are the
// fields of [idem.Filter]: States, Scopes, Types, Keys, IDs, Failed, ReceivedFrom and
// ReceivedUntil. Without -state they choose among events that are parked or
// unhandled, list among all that are not done. Ids may also follow the verb. Quote
// those that contain an &.
//
// # Before something is changed
//
// A verb that changes something says first in which database: host, port, name, user
// and schema. Verbs that only read say that where neither -database nor DATABASE_URL
// names it.
//
// Before events are changed, the command prints how many, the first few, and the
// effect, and asks; -yes skips the question. The action is bound to those events: an
// event that comes in between is left alone, and the command says so. Without a
// terminal it changes nothing unless -yes is given. With -dry-run it only shows the
// effect. Migrate changes tables only, and stop no event: they do not ask. Actions are
// in the audit trail, under the name that -as gives or else user@host.
//
// # Output
//
// Text is for people, in English. In a terminal tables are as wide as that: a row that is
// longer has several lines.
//
// With -json, stdout has one object per line, with the names of Go in snake_case: an
// account is its scope, an entity its key. An error is an object on stderr. Progress
// is written to stderr if that is a terminal. A body is printed only by show -payload,
// which is recorded.
//
// # Exit status
//
// Idem help prints them. 1 is also a replay in which an event failed, or none had a
// handler, and an id among others that no event has. 4 is anything that doctor found
// wrong.
//
// Ctrl-C lets the event that is being processed finish. The same command again goes on
// with the rest: it shows the events that are left, and asks anew. A second Ctrl-C ends
// the program immediately, as kill -9 does: the event's transaction is rolled back, and
// nothing is done twice.
package idemcmd
