// Package console is a web page for the operators of an application that receives
// webhooks. It says first whether all is well or what is not, shows which events wait and why, and replays,
// requeues, acknowledges and discards them.
//
//	page := console.New(inbox)
//	page.Access = func(r *http.Request) (string, console.Access) {
//		user, ok := whoIs(r) // your login
//		return user, console.Access{See: ok, Act: ok && isOnCall(user)}
//	}
//	defer page.Close()
//	mux.Handle("/webhooks/console/", page)
//
// Further settings have all parts of the program say what is not well, and show the provider's delivery queues, and
// release them:
//
//	page.Health = health.New(inbox, canary)
//	page.Queues = map[string]gauge.Queues{"asaas": webhook.NewQueues(client, token, inbox)}
//
// The fields Unmatched and Charges list paid charges that match nothing of the application's, and find those of a customer or a
// reference: the example has both, of asaas/charges.
//
// The page is plain HTML and one style sheet, embedded in the binary, in English and in
// Portuguese: as the browser prefers, or as its user chooses, which a cookie keeps.
// Times are UTC, or in the viewer's zone where the browser runs the page's scripts,
// which also refresh it. It needs no JavaScript otherwise, no session, no tables besides
// those of [idem.Migrate], and no rights but to read and write those. Its links are
// relative: it works below any path that ends in a slash, behind any proxy, with
// [http.StripPrefix] and without.
//
// # Rights
//
// No user may do anything until [Handler].Access is set: without it every request is
// answered 403. Access is called for each request, and returns the user and their rights:
//
//	See     everything but bodies and the errors of handlers, which may name a person
//	Reveal  those errors, and bodies, with their values masked unless the whole body is asked for
//	Act     everything that changes something, and dry runs
//
// Reveal and Act need See and the name of a user, and are recorded in the audit trail.
//
// [http.CrossOriginProtection] refuses forms of other sites. A proxy must keep the
// Host header, or the forms of browsers that send no Sec-Fetch-Site are refused, too.
//
// # Actions
//
// It runs replay, requeue, dry run, acknowledge and discard, for one event, for those that are chosen
// by their checkboxes, or for all that a filter chooses, 50,000 at most. A page shows how many
// they are, the first five and the effect, and asks for confirmation. The action is bound to the events that were
// shown: it leaves those alone that came since, and those that are in none of the chosen
// states any more, and the audit trail says so. To discard all events that are not done,
// one types the name of the source.
//
// From the page of an event or an entity it erases the stored data of events beyond the fact that they came: see
// [operator.Operator.PlanErase]. One gives a reason, and types the name of the source.
// Events that are not done are left alone unless a box of their own says otherwise.
//
// An action that takes longer than two seconds continues in the background until it is
// done, somebody stops it, or [Handler.Close] is called; its page shows its progress,
// and the outcome of each event. A replay that is stopped ends after the event that it
// is at. If the process dies, the remaining events are as they were. Choose them again:
// they are shown first, and none is done twice.
// The audit trail has every action, with its actor, reason and the result; the page of
// an event has those that touched it.
//
// Each event that is not done says why: the event that it waits for, with that one's
// error and next attempt, which process works on it, or that no workers are alive. The
// field at the top finds an event by its id, or all events of an entity, in every source
// and account, done ones too. Where that would read more than a million rows it asks
// first: see operator.Operator.ScanOfKey.
//
// # Cost
//
// It costs nothing while no page is open. A page refreshes itself every 5 seconds, one with an
// action that runs every 2, but for at most a tenth of the time, and only while its tab is
// visible. It says so when it cannot be refreshed, and ends when the session has ended. It
// leaves the fields that people have chosen, typed or focused: while there would be no place
// for that, it stays as it is.
//
// However many people look, the overview reads the events that are not done after an action, and
// else at most every five seconds and for at most a tenth of the time, or half of it while that
// fails. It waits 100 ms for the counts; then it shows the last ones with their time.
//
// With ten million events done and 100,000 not, on two busy cores, the overview
// answers in 100 ms, a list of events in 0.1 to 0.4 seconds, and the question
// before an action on 10,000 of them in 2 to 3 seconds.
package console
