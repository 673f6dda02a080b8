package queue

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/internal/command"
)

// action is a verb, with the method that does it.
type action struct {
	verb
	run func(*program, context.Context) error
}

var verbs = []action{
	{verb: verb{
		name:  "status",
		about: "the webhooks, the state of their queues, and what the application owes",
		more: "A queue is ok, penalized (Asaas waits longer and longer between attempts), or stopped (after 15\n" +
			"failures in a row). For a webhook that is disabled Asaas makes no events, and none comes later.\n" +
			"With -name, -url and -handled it also says which events of the application's webhook never come.",
		flags: []string{"last-event", "name", "url", "handled", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).status},
	{verb: verb{
		name:       "recover",
		isAboutOne: true,
		about:      "prove the way to the receiver, get the queue going again, and watch it",
		more: "Sends the event of a canary to the webhook's own URL, which proves the way and the database, and runs no\n" +
			"handler. Where an event that failed is stored, it names the oldest, and asks whether to try the\n" +
			"handlers with it, or -try says so: what they write is rolled back, and HTTP requests and e-mails that\n" +
			"they send are sent, unless they ask idem.IsDryRun first. Then it resumes the queue or removes its\n" +
			"penalty, and watches until Asaas counts no failures any more. It ends with what the application owes.",
		flags: []string{"yes", "try", "every", "replay", "database"}, env: []string{"ASAAS_WEBHOOK_TOKEN", "DATABASE_URL"},
	}, run: (*program).change},
	{verb: verb{
		name:       "remove-penalty",
		isAboutOne: true,
		about:      "have Asaas deliver at once again, without trying the receiver",
		more:       "The next failure leads to a penalty again. Asaas limits it strictly, without saying how.",
		flags:      []string{"yes", "force", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).change},
	{verb: verb{
		name:       "resume",
		isAboutOne: true,
		about:      "start a queue again that Asaas stopped, without trying the receiver",
		more:       "What has waited is delivered in its order.",
		flags:      []string{"yes", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).change},
	{verb: verb{
		name:       "enable",
		isAboutOne: true,
		about:      "have Asaas make events again for a webhook that is disabled",
		more: "What happened while it was disabled never comes as events: it says what finds that. For a webhook that\n" +
			"was deleted it says how to make it again.",
		flags: []string{"yes", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).enable},
	{verb: verb{
		name:  "plan",
		about: "compare the webhook with what the application handles; it changes nothing",
		more: "Whether it exists, is enabled and not stopped, its URL, its order (SEQUENTIALLY), apiVersion 3, its token\n" +
			"and its event types. The exit status is 4 if it differs.",
		flags: []string{"name", "url", "email", "handled"}, env: []string{"ASAAS_WEBHOOK_TOKEN"},
	}, run: (*program).plan},
	{verb: verb{
		name:  "apply",
		about: "make the webhook, or repair how it differs",
		more: "Prints the plan, asks, and changes what Asaas's API can change, in one call. A token or a URL is sent to\n" +
			"Asaas only if the receiver at that URL accepts the token, which it is asked with an event of a canary:\n" +
			"so start the application first. It deletes no webhook. The exit status is 4 if it still differs.",
		flags: []string{"name", "url", "email", "handled", "yes"}, env: []string{"ASAAS_WEBHOOK_TOKEN"},
	}, run: (*program).apply},
	{verb: verb{
		name:       "rotate",
		isAboutOne: true,
		about:      "give the webhook a new token, which the application accepts already",
		more: "First deploy the application with both tokens. It sends the receiver an event of a canary with the new one, and\n" +
			"changes nothing unless that is accepted. You end the old one, once deliveries have come with the new one.",
		flags: []string{"yes"}, env: []string{"ASAAS_NEW_WEBHOOK_TOKEN"},
	}, run: (*program).rotate},
	{verb: verb{
		name:       "events",
		isAboutOne: true,
		about:      "the event types that the webhook subscribes to",
		flags:      []string{"handled"},
	}, run: (*program).events},
	{verb: verb{
		name:  "reconcile",
		about: "compare the charge table with Asaas, and print what differs; it changes nothing",
		more: "For after a queue that was stopped for more than 14 days, or a webhook that was disabled. Reads the charges\n" +
			"that were made or paid since a time, those that the account's statement names since, the cards whose money is\n" +
			"to come, and the open ones of the table, and prints each row as it is and as it would be: the application\n" +
			"makes it so, with charges.Daily or charges.Reconcile, and books the difference. Its calls come out of the account's\n" +
			"own quota: one for each 100 charges or movements, and one for each charge that only the statement names.\n" +
			"It cannot find: a receipt in cash of before the gap that was undone in it; a charge that was made and removed in\n" +
			"the gap; a change of a charge that is neither open nor in the statement; and what Asaas's lists show late.\n" +
			"The exit status is 4 if something differs, is gone or failed, and 1 if the run did not come to its end.",
		flags: []string{"scope", "since", "until", "calls", "resume-at", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).reconcile},
	{verb: verb{
		name:  "find",
		words: "NAME", needs: "a customer's id at Asaas, cus_…, your own external reference, or the id of an installment plan, a subscription or a Checkout",
		about:   "the charges of a person or an order, from the charge table; Asaas is not asked",
		more:    "It ends with the command that prints the events of the charges: idem show -entity. docs/private-data.md goes on from there.",
		offline: true, flags: []string{"limit", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).find},
	{verb: verb{
		name:  "unmatched",
		about: "paid charges that match nothing of the application's, from the charge table; Asaas is not asked",
		more: "-known is the condition that the application gives to charges.Unmatched; a program that is built with that has it.\n" +
			"The exit status is 4 if there is one, and 3 if there is none.",
		offline: true, flags: []string{"known", "limit", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).unmatched},
}

// variables lists those of the environment.
var variables = []string{
	"ASAAS_API_KEY the API key, in single quotes because of its $",
	"ASAAS_BASE_URL the API's address, for a fake Asaas for example: http://127.0.0.1:8090/v3",
	"ASAAS_WEBHOOK_TOKEN the webhook's token, as the application verifies with it",
	"ASAAS_NEW_WEBHOOK_TOKEN the token that the webhook is to get, for rotate",
	"DATABASE_URL the application's database, where -database does not say it; without both, what is owed is not known",
	"HTTPS_PROXY and HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR: as any Go program reads them",
}

// verb is one of asaas-queue.
type verb struct {
	name       string
	isAboutOne bool
	words      string // that follow the verb, if it is not about one webhook
	needs      string // said where they are missing
	offline    bool   // Asaas is not asked
	about      string // a line
	more       string
	flags      []string
	env        []string
}

// options holds the flags and the words of the command line.
type options struct {
	verb                                   *verb
	id                                     string
	sandbox, json, yes, try, force, replay bool

	database  string
	lastEvent time.Time // zero if it is not given
	handled   string    // a file; - is stdin
	every     time.Duration

	since, until time.Time // of reconcile
	calls        int
	resumeAt     *charges.Cursor
	scope        string

	webhook, url, email string // as it is wanted

	known string // of unmatched
	limit int
}

// sandboxed is the flag of every verb.
func (o *options) sandboxed(f *flag.FlagSet) {
	f.BoolVar(&o.sandbox, "sandbox", false, "the account is in Asaas's sandbox")
}

// add adds the flag of that name.
func (o *options) add(f *flag.FlagSet, name string) {
	const moment = "2026-11-20T10:00:00-03:00, without a zone for Brasília, or how long ago, 3d"
	switch name {
	case "yes":
		f.BoolVar(&o.yes, name, false, "change without asking; needed where nobody is at a terminal")
	case "force":
		f.BoolVar(&o.force, name, false, "also where Asaas counts no failures; what it counts is not documented")
	case "try":
		f.BoolVar(&o.try, name, false, "try the handlers with the oldest event that failed, without asking; what they write is rolled back, their HTTP requests and e-mails are real")
	case "replay":
		f.BoolVar(&o.replay, name, false, "replay the events that are parked or wait for another delivery; needs a program with the application's handlers")
	case "database":
		f.StringVar(&o.database, name, "", "`URL` of the application's database; default: DATABASE_URL, which other users of this machine cannot see")
	case "last-event":
		f.Func(name, "the `time` when the newest event that the application acknowledged came to be: "+moment+"; it tells the time left", command.Time(&o.lastEvent, asaas.Brasilia()))
	case "handled":
		f.StringVar(&o.handled, name, "", "compare with the event types in this `file`, those that asaas.Dispatcher.Types returns, one per line or as fmt prints them; - reads them from stdin")
	case "every":
		f.Var(command.Duration(&o.every, 5*time.Second), name, "the `time` between two looks at the queue")
	case "scope":
		f.StringVar(&o.scope, name, "", "the `account` of the key, as the application names it; none by default, for an application of one account")
	case "since":
		f.Func(name, "the `time` before which every event is known to have arrived: "+moment, command.Time(&o.since, asaas.Brasilia()))
	case "until":
		f.Func(name, "the `time` at which the gap ends; now by default", command.Time(&o.until, asaas.Brasilia()))
	case "calls":
		f.IntVar(&o.calls, name, 1000, "make `N` calls of the API at most, of 25,000 in 12 hours")
	case "resume-at":
		f.Func(name, "the `cursor` that a run printed which came not to its end, in single quotes", o.setCursor)
	case "known":
		f.StringVar(&o.known, name, "", "an SQL `condition` on the row c of asaas_charges, true for a charge that the application has a place for")
	case "limit":
		f.IntVar(&o.limit, name, 100, "print at most `N`; 0 is all")
	case "name":
		f.StringVar(&o.webhook, name, "", "the webhook's `name` at Asaas; the webhook of this name or URL is the application's")
	case "url":
		f.StringVar(&o.url, name, "", "the `URL` that Asaas delivers to")
	case "email":
		f.StringVar(&o.email, name, "", "the `address` that Asaas writes to when deliveries fail; a new webhook needs one")
	default:
		panic("asaas-queue: there is no flag " + name)
	}
}

func (o *options) setCursor(text string) error {
	o.resumeAt = new(charges.Cursor)
	if json.Unmarshal([]byte(text), o.resumeAt) != nil {
		return errors.New("it is no cursor: copy it whole, in single quotes")
	}
	return nil
}
