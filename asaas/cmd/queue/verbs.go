package queue

import "context"

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
		about:      "try the receiver, get the queue going again, and watch it",
		more: "Sends a made-up event of each type that the webhook subscribes to. The application's handlers run for\n" +
			"real, and what they wrote is rolled back: HTTP requests and e-mails that they send are sent, unless\n" +
			"they ask idem.IsDryRun first. If all that it handles pass, it resumes the queue or removes its penalty, and watches until Asaas counts no\n" +
			"failures any more. It ends with what the application owes.",
		flags: []string{"yes", "every", "replay", "database"}, env: []string{"ASAAS_WEBHOOK_TOKEN", "DATABASE_URL", "XDG_CACHE_HOME"},
	}, run: (*program).change},
	{verb: verb{
		name:       "remove-penalty",
		isAboutOne: true,
		about:      "have Asaas deliver at once again, without trying the receiver",
		more: "The next failure leads to a penalty again. Once a minute at most, for all who use this machine's\n" +
			"account: Asaas limits it strictly, without saying how.",
		flags: []string{"yes", "force", "database"}, env: []string{"DATABASE_URL", "XDG_CACHE_HOME"},
	}, run: (*program).change},
	{verb: verb{
		name:       "resume",
		isAboutOne: true,
		about:      "start a queue again that Asaas stopped, without trying the receiver",
		more:       "What has waited is delivered in its order.",
		flags:      []string{"yes", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).change},
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
		name:       "reconcile",
		isAboutOne: true,
		about:      "name the charges of which an event never came; it changes nothing",
		more: "For after a queue that was stopped for more than 14 days, or a webhook that was disabled. Compares what\n" +
			"Asaas says since a time with the events that are stored. Its calls come out of the account's own quota.",
		flags: []string{"since", "until", "calls", "resume-at", "database"}, env: []string{"DATABASE_URL"},
	}, run: (*program).reconcile},
}

// variables lists those of the environment.
var variables = []string{
	"ASAAS_API_KEY the API key, in single quotes because of its $",
	"ASAAS_BASE_URL the API's address, for a fake Asaas for example: http://127.0.0.1:8090/v3",
	"ASAAS_WEBHOOK_TOKEN the webhook's token, as the application verifies with it",
	"ASAAS_NEW_WEBHOOK_TOKEN the token that the webhook is to get, for rotate",
	"DATABASE_URL the application's database, where -database does not say it; without both, what is owed is not told",
	"XDG_CACHE_HOME where removals of penalties are noted",
	"HTTPS_PROXY and HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR: as any Go program reads them",
}
