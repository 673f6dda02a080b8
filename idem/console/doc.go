// Package console is a web page for the people who run an application that receives
// webhooks. It shows which events wait and why, and replays, requeues and discards
// them.
//
//	page := console.New(processor)
//	page.Access = func(r *http.Request) (string, console.Access) {
//		user, ok := whoIs(r) // your login
//		return user, console.Access{See: ok, Act: ok && isOnCall(user)}
//	}
//	defer page.Close()
//	mux.Handle("/webhooks/console/", page)
//
// To also show the provider's delivery queues, and release them:
//
//	page.Queues = map[string]idem.Queues{"asaas": asaas.NewQueues(client, probe, processor)}
//
// The page is plain HTML and one style sheet, embedded in the binary. It needs no
// JavaScript, no session, no tables besides those of [idem.Migrate], and no rights
// but to read and write those. Its links are relative: it works below any path that
// ends in a slash, behind any proxy, with [http.StripPrefix] and without.
//
// # Who may do what
//
// Nobody may do anything until [Handler].Access is set: without it every request is
// answered 403. It is called for each request, and returns who makes it and what
// they may do:
//
//	See     everything but bodies
//	Reveal  bodies, with their values masked unless the whole body is asked for
//	Act     everything that changes something, and dry runs
//
// Reveal and Act need See and the name of a user, and are recorded in the audit trail.
//
// [http.CrossOriginProtection] refuses forms of other sites. A proxy must keep the
// Host header, or the forms of browsers that send no Sec-Fetch-Site are refused, too.
//
// # What it does
//
// It runs replay, requeue, dry run and discard, for one event or for all that a
// filter chooses, 50,000 at most. A page shows them first, and asks for confirmation. The
// action is bound to the events that were shown: it leaves those alone that came
// since, and those that are in none of the chosen states any more, and the audit trail
// says so. To discard all events that are not done, one types the name of the source.
//
// An action that takes longer than two seconds continues in the background until it
// is done or [Handler.Close] is called; the audit trail shows how far it is. If the
// process dies, the remaining events are as they were, and none is done twice. The
// audit trail has every action, with who, why and the result.
//
// Requeue is offered where the receiver has workers: for an [idem.Inbox] and an
// [outbox.Outbox].
//
// # What it costs
//
// It costs nothing while nobody looks: pages do not refresh by themselves. The
// overview reads only events that are not done. However many people look, it reads
// them after an action, and else at most every five seconds and for at most a tenth
// of the time. It waits 100 ms for the counts; then it shows the last ones with
// their time, or that the events are being counted.
//
// With ten million events done and 100,000 not, on two busy cores, the overview
// answers in 100 ms, a list of events in 0.1 to 0.4 seconds, and the question
// before an action on 10,000 of them in 2 to 3 seconds.
package console
