// Asaas-queue shows the queues of an account's webhooks at Asaas, and gets those
// going again that Asaas has slowed down or stopped:
//
//	export ASAAS_API_KEY='$aact_prod_…' ASAAS_WEBHOOK_TOKEN='the token of the webhook'
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue status
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue recover ID
//
// The verbs; help VERB prints all about one:
//
//	status              the webhooks, the state of their queues, and how long until Asaas deletes what waits
//	recover ID          send a canary to the receiver, which runs no handler; if it arrives, resume the queue or
//	                    remove its penalty, and watch until Asaas counts no failures any more
//	remove-penalty ID   have Asaas deliver at once again, without trying the receiver
//	resume ID           start a queue again that Asaas stopped, without trying the receiver
//	enable ID           have Asaas make events again for a webhook that is disabled
//	plan                compare the webhook with what the application handles; it changes nothing
//	apply               make the webhook, or repair how it differs
//	rotate ID           give the webhook a new token, which the application accepts already beside the old one
//	events ID           the event types that the webhook subscribes to
//	reconcile           compare the charge table with Asaas, and print what differs; it changes nothing
//	find NAME           the charges of a customer, cus_…, or of your own reference, from the charge table
//	unmatched           paid charges that match nothing of the application's, from the charge table
//
// status, recover, remove-penalty, resume and enable end with the events that the application owes: those that are parked,
// fail, or wait for another one or another delivery. They are in its database. To
// replay them takes the application's handlers: package queue is this command for
// a program that has them, adds recover -replay, and has plan compare with its handlers.
//
// The flags, after the verb, with one hyphen or two; -sandbox and -json also before it:
//
//	-sandbox            the account is in Asaas's sandbox
//	-json               print one JSON object per line; what went wrong is one on stderr
//	-yes                change without asking; needed where nobody is at a terminal
//	-database URL       the application's database, where DATABASE_URL does not say it
//	-try                recover: try the handlers with the oldest event that failed, without asking. What they write is
//	                    rolled back; their HTTP requests and e-mails are real, unless they ask idem.IsDryRun
//	-replay             recover: replay what is owed; needs a program with the application's handlers
//	-force              remove-penalty: also where Asaas counts no failures; what it counts is not documented
//	-last-event TIME    status: when the newest event that the application acknowledged came to be, its dateCreated:
//	                    2026-11-20T10:00:00-03:00, or without a zone for Brasília. It tells the time left
//	-name NAME          plan, apply, status: the webhook's name at Asaas; the one of this name or URL is the application's
//	-url URL            plan, apply, status: where Asaas is to deliver
//	-email ADDRESS      plan, apply: where Asaas writes to when deliveries fail
//	-handled FILE       plan, apply, status, events: compare with the types that the application handles, those that
//	                    asaas.Dispatcher.Types returns, one per line or as fmt prints them; - reads them from stdin
//	-scope ACCOUNT      reconcile: the account of the key, as the application names it; none by default
//	-since TIME         reconcile: the time before which every event is known to have arrived
//	-until TIME         reconcile: the end of the gap; now by default
//	-calls N            reconcile: how many calls of the API to make at most; 1000 by default, of 25,000 in 12 hours
//	-resume-at CURSOR   reconcile: go on where a run was paused, with the cursor that it printed
//	-known SQL          unmatched: true for a charge c of asaas_charges that the application has a place for
//	-limit N            find, unmatched: print at most N; 0 is all
//	-every TIME         recover: how often to look at the queue; 5s by default
//
// The environment has the secrets, which must be in no shell's history and no list of processes:
//
//	ASAAS_API_KEY       the API key, in single quotes because of its $
//	ASAAS_WEBHOOK_TOKEN recover, plan, apply: the webhook's token, as the application verifies with it
//	ASAAS_NEW_WEBHOOK_TOKEN rotate: the token that the webhook is to get
//	DATABASE_URL        the application's database; without it, what is owed is not reported. It may lack what the
//	                    environment variables of Postgres's own programs say, PGPASSWORD for example
//	ASAAS_BASE_URL      the API's address, for a fake Asaas for example: http://127.0.0.1:8090/v3
//	HTTPS_PROXY, HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR as of any Go program
//
// SIGINT, SIGTERM and SIGHUP end it; it lists the changes that were made and those that were not.
//
// The time left counts from the creation of an event, which package idem does not
// keep once an event is done: hence -last-event. Asaas keeps events for 14 days.
//
// The exit status, that of all commands; of go run it is 1 for all but 0:
//
//	0    done
//	1    not done, or not all of it: stderr says why, and what was changed
//	2    used in a wrong way: nothing was done
//	3    nothing matched: nothing was done
//	4    done, and what was found needs somebody
//	130  ended by Ctrl-C before it was done; 143 by SIGTERM, 129 by SIGHUP
//
// 3 is a webhook that is not there. 4 is a queue that is held up, a webhook that is
// disabled or not as plan and apply want it, events that are owed, or are handled and not
// subscribed to, and charges whose rows are not as Asaas has them.
package main

import "github.com/paghooks/paghooks/asaas/cmd/queue"

func main() { new(queue.Command).Main() }
