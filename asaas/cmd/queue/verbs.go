package queue

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/internal/command"
)

// verbs are all verbs, each with the names of its flags.
func (p *program) verbs() []command.Verb {
	const id, oneWebhook = "ID", "the id of one webhook: status prints them"
	return []command.Verb{
		p.online(command.Verb{
			Name:  "status",
			About: "the webhooks, the state of their queues, and what the application owes",
			More: "A queue is ok, penalized (Asaas waits longer and longer between attempts), or stopped (after 15\n" +
				"failures in a row). For a webhook that is disabled Asaas makes no events, and none comes later.\n" +
				"With -name, -url and -handled it also says which events of the application's webhook never come.",
		}, p.status, "last-event", "name", "url", "handled", "no-pix-automatic", "database"),
		p.online(command.Verb{
			Name: "recover", Words: id, Needs: oneWebhook,
			About: "prove the way to the receiver, get the queue going again, and watch it",
			More: "Sends the event of a canary to the webhook's own URL, which proves the way and the database, and runs no\n" +
				"handler. Where an event that failed is stored, it names the oldest, and asks whether to try the\n" +
				"handlers with it, or -try says so: what they write is rolled back, and HTTP requests and e-mails that\n" +
				"they send are sent, unless they ask idem.IsDryRun first. Then it resumes the queue or removes its\n" +
				"penalty, and watches until Asaas counts no failures any more. It ends with what the application owes.\n" +
				"The ID all stands for each webhook whose queue is held up.",
			Variables: []string{"ASAAS_WEBHOOK_TOKEN"},
		}, p.recover, "yes", "try", "every", "replay", "database"),
		p.online(command.Verb{
			Name: "remove-penalty", Words: id, Needs: oneWebhook,
			About: "have Asaas deliver at once again, without trying the receiver",
			More: "The next failure leads to a penalty again. Asaas limits it strictly, without saying how. It may help where Asaas\n" +
				"counts no failures, too: what it counts is not documented.",
		}, p.removePenalty, "yes", "database"),
		p.online(command.Verb{
			Name: "resume", Words: id, Needs: oneWebhook,
			About: "start a queue again that Asaas stopped, without trying the receiver",
			More:  "What has waited is delivered in its order.",
		}, p.resume, "yes", "database"),
		p.online(command.Verb{
			Name: "enable", Words: id, Needs: oneWebhook,
			About: "have Asaas make events again for a webhook that is disabled",
			More: "What happened while it was disabled never comes as events: it says what finds that. For a webhook that\n" +
				"was deleted it says how to make it again.",
		}, p.enable, "yes", "database"),
		p.online(command.Verb{
			Name:  "plan",
			About: "compare the webhook with what the application handles; it changes nothing",
			More: "Whether it exists, is enabled and not stopped, its URL, its order (SEQUENTIALLY), apiVersion 3, its token\n" +
				"and its event types. The exit status is 4 if it differs.",
			Variables: []string{"ASAAS_WEBHOOK_TOKEN"},
		}, p.plan, "name", "url", "email", "handled", "no-pix-automatic"),
		p.online(command.Verb{
			Name:  "apply",
			About: "make the webhook, or repair how it differs",
			More: "Prints the plan, asks, and changes what Asaas's API can change, in one call. A token or a URL is sent to\n" +
				"Asaas only if the receiver at that URL accepts the token, which it is asked with an event of a canary:\n" +
				"so start the application first. It deletes no webhook. If Asaas refuses the webhook as a whole and it was\n" +
				"to get PIX_AUTOMATIC_* types, it names them, and asks whether to leave them out; -no-pix-automatic does so.\n" +
				"The exit status is 4 if it still differs.",
			Variables: []string{"ASAAS_WEBHOOK_TOKEN"},
		}, p.apply, "name", "url", "email", "handled", "no-pix-automatic", "yes"),
		p.online(command.Verb{
			Name: "rotate", Words: id, Needs: oneWebhook,
			About: "give the webhook a new token, which the application accepts already",
			More: "First deploy the application with both tokens. It sends the receiver an event of a canary with the new one, and\n" +
				"changes nothing unless that is accepted. You end the old one, once deliveries have come with the new one.",
			Variables: []string{"ASAAS_NEW_WEBHOOK_TOKEN"},
		}, p.rotate, "yes"),
		p.online(command.Verb{
			Name:  "reconcile",
			About: "compare the charge table with Asaas, and print what differs; it changes nothing",
			More: "For after a queue that was stopped for more than 14 days, or a webhook that was disabled. Reads the charges\n" +
				"that were made or paid since a time, those that the account's statement names since, the cards whose money is\n" +
				"to come, and the open ones of the table, and prints each row as it is and as it would be: the application\n" +
				"makes it so, with charges.Daily or charges.Reconcile, and books the difference. Its calls come out of the account's\n" +
				"own quota: one for each 100 charges or movements, and one for each charge that only the statement names.\n" +
				"It cannot find: a receipt in cash that was undone, if it was of before the gap or its charge is removed now; a charge\n" +
				"that was made and removed in the gap; a change of a charge that is neither open nor in the statement; and what\n" +
				"Asaas's lists show late.\n" +
				"The exit status is 4 if something differs, is gone or failed, and 1 if the run did not come to its end.",
		}, p.reconcile, "scope", "since", "until", "calls", "resume-at", "database"),
		p.offline(command.Verb{
			Name: "find", Words: "NAME",
			Needs: "a customer's id at Asaas, cus_…, your own external reference, or the id of an installment plan, a subscription or a Checkout",
			About: "the charges of a person or an order, from the charge table; Asaas is not asked",
			More:  "It ends with the command that prints the events of the charges: idem show -entity. docs/private-data.md goes on from there.",
		}, p.find, "limit", "database"),
		p.offline(command.Verb{
			Name:  "filled",
			About: "record that no other program has ever booked a charge of the account; Asaas is not asked",
			More: "For a new shop, whose first events are of charges from before: charges.Orders and charges.Handler park those, as\n" +
				"another program may have booked a part of them. If one has, docs/import.md fills the table instead: what was\n" +
				"booked before would be booked again. It ends with the command that has the parked events done.",
		}, p.filled, "scope", "yes", "database"),
		p.offline(command.Verb{
			Name:  "unmatched",
			About: "paid charges that match nothing of the application's, from the charge table; Asaas is not asked",
			More: "-known is the condition that the application gives to charges.Unmatched; a program that is built with that has it.\n" +
				"The exit status is 4 if there is one, and 3 if there is none.",
		}, p.unmatched, "known", "limit", "database"),
	}
}

// online completes a verb that asks Asaas.
func (p *program) online(v command.Verb, run func(context.Context) error, flags ...string) command.Verb {
	v.Variables = append([]string{"ASAAS_API_KEY", "ASAAS_ACCOUNTS", "ASAAS_BASE_URL"}, v.Variables...)
	return p.offline(v, func(ctx context.Context) error {
		if accounts, err := p.list(); accounts != nil || err != nil {
			return errors.Join(err, p.overAccounts(ctx, accounts, v, run))
		}
		if err := p.connect(); err != nil {
			return err
		}
		err := run(ctx)
		if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound && v.Words == "ID" {
			return command.Error(command.Nothing, err)
		}
		return err
	}, append(flags, "accounts", "account")...)
}

// offline completes a verb.
func (p *program) offline(v command.Verb, run func(context.Context) error, flags ...string) command.Verb {
	v.Flags = []command.Flags{p.named(flags...)}
	if slices.Contains(flags, "database") {
		v.Variables = append(v.Variables, "DATABASE_URL")
	}
	v.Run = func(ctx context.Context, words []string) error {
		p.id = strings.Join(words, "")
		err := run(ctx)
		if p.unprinted != nil && (err == nil || errors.Is(err, errAttention)) {
			return p.unprinted
		}
		return err
	}
	return v
}

// variables lists those of the environment.
var variables = []string{
	"ASAAS_API_KEY the API key, in single quotes because of its $",
	"ASAAS_ACCOUNTS the file of -accounts, where that does not say it",
	"ASAAS_BASE_URL the API's address, for a fake Asaas for example: http://127.0.0.1:8090/v3",
	"ASAAS_WEBHOOK_TOKEN the webhook's token, as the application verifies with it",
	"ASAAS_NEW_WEBHOOK_TOKEN the token that the webhook is to get, for rotate",
	"DATABASE_URL the application's database, where -database does not say it; without both, what is owed is not known",
	"HTTPS_PROXY and HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR: as any Go program reads them",
}

// options holds the flags and the words of the command line.
type options struct {
	id                              string
	sandbox, json, yes, try, replay bool

	database  string
	lastEvent time.Time // zero if it is not given
	handled   string    // a file; - is stdin
	every     time.Duration

	since, until time.Time // of reconcile
	calls        int
	resumeAt     *charges.Cursor
	scope        string

	webhook, url, email string // as it is wanted
	noPix               bool

	accounts, account string   // a file, and one of its accounts
	types             []string // of the file handled, once it is read

	known string // of unmatched
	limit int
}

// named adds the flags of these names.
func (o *options) named(names ...string) command.Flags {
	return func(f *flag.FlagSet) {
		all := o.flags()
		for _, name := range names {
			one := all.Lookup(name)
			f.Var(one.Value, one.Name, one.Usage)
		}
	}
}

// flags returns the flags of all verbs.
func (o *options) flags() *flag.FlagSet {
	const moment = "2026-11-20T10:00:00-03:00, without a zone for Brasília, or how long ago, 3d"
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.BoolVar(&o.sandbox, "sandbox", false, "the account is in Asaas's sandbox")
	f.BoolVar(&o.yes, "yes", false, "change without asking; needed where nobody is at a terminal")
	f.BoolVar(&o.try, "try", false, "try the handlers with the oldest event that failed, without asking; what they write is rolled back, their HTTP requests and e-mails are real")
	f.BoolVar(&o.replay, "replay", false, "replay the events that are parked; needs a program with the application's handlers")
	f.StringVar(&o.database, "database", "", "`URL` of the application's database; default: DATABASE_URL, which other users of this machine cannot see")
	f.Func("last-event", "the `time` when the newest event that the application acknowledged came to be: "+moment+"; it tells the time left", command.Time(&o.lastEvent, asaas.Brasilia()))
	f.StringVar(&o.handled, "handled", "", "compare with these `types`, with commas between, or those in this file, that asaas.Dispatcher.Types returns, one per line or as fmt prints them; - reads them from stdin")
	o.every = 5 * time.Second
	f.Func("every", "the `time` between two looks at the queue (default 5s)", command.Duration(&o.every))
	f.StringVar(&o.scope, "scope", "", "the `account` of the key, as the application names it; none by default, for an application of one account")
	f.Func("since", "the `time` before which every event is known to have arrived: "+moment, command.Time(&o.since, asaas.Brasilia()))
	f.Func("until", "the `time` at which the gap ends; now by default", command.Time(&o.until, asaas.Brasilia()))
	f.IntVar(&o.calls, "calls", 1000, "make `N` calls of the API at most, of 25,000 in 12 hours")
	f.Func("resume-at", "the `cursor` that a run printed which came not to its end, in single quotes", o.setCursor)
	f.StringVar(&o.accounts, "accounts", "", "go over the accounts in this `file`, a line for each: its name (- for the one without a scope), the variable of the environment with its "+
		"API key, and that with its webhook's token; in -url, {account} is the name")
	f.StringVar(&o.account, "account", "", "only the account of this `name`, of a list of accounts")
	f.StringVar(&o.known, "known", "", "an SQL `condition` on the row c of asaas_charges, true for a charge that the application has a place for")
	f.IntVar(&o.limit, "limit", 100, "print at most `N`; 0 is all")
	f.StringVar(&o.webhook, "name", "", "the webhook's `name` at Asaas; the webhook of this name or URL is the application's")
	f.BoolVar(&o.noPix, "no-pix-automatic", false, "leave the PIX_AUTOMATIC_* types out, which an account without Pix Automático cannot subscribe to")
	f.StringVar(&o.url, "url", "", "the `URL` that Asaas delivers to")
	f.StringVar(&o.email, "email", "", "the `address` that Asaas writes to when deliveries fail; a new webhook needs one")
	return f
}

func (o *options) setCursor(text string) error {
	o.resumeAt = new(charges.Cursor)
	if json.Unmarshal([]byte(text), o.resumeAt) != nil {
		return errors.New("it is no cursor: copy it whole, in single quotes")
	}
	return nil
}
