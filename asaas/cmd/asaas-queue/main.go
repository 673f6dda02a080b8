// Asaas-queue shows the queues of an account's webhooks at Asaas, and gets those
// going again that Asaas has slowed down or stopped:
//
//	export ASAAS_API_KEY='$aact_prod_…' ASAAS_WEBHOOK_TOKEN='the token of the webhook'
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue status
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue recover ID
//
// The commands; help COMMAND prints all about one:
//
//	status              the webhooks, the state of their queues, and how long until Asaas deletes what waits
//	recover ID          try the receiver with events that are rolled back; if it is sound, resume the queue or
//	                    remove its penalty, and watch until Asaas counts no failures any more. The handlers run
//	                    for real: HTTP requests that they make are made, unless they ask idem.IsDryRun first
//	remove-penalty ID   have Asaas deliver at once again, without trying the receiver
//	resume ID           start a queue again that Asaas stopped, without trying the receiver
//	events ID           the event types that the webhook subscribes to
//	reconcile ID        name the charges of which an event never came, by what Asaas says of them; it changes nothing
//
// All but events and reconcile end with what the application owes: the events that are parked,
// or that wait for another delivery. They are in its database, DATABASE_URL. To
// replay them takes the application's handlers: package queue is this command for
// a program that has them, and adds recover --replay.
//
// The flags, before or after the command:
//
//	--sandbox           the account is in Asaas's sandbox
//	--json              print JSON, also on failure; recover prints a line of it per step
//	--yes               change without asking; needed where nobody is at a terminal
//	--force             remove-penalty: also where Asaas counts no failures; what it counts is not documented
//	--last-event TIME   status: when the newest event that the application acknowledged came to be, its dateCreated:
//	                    2026-11-20T10:00:00-03:00, or without a zone for Brasília. It tells the time left
//	--handled FILE      events: compare with the types that the application handles, those that
//	                    asaas.Dispatcher.Types returns, one per line or as fmt prints them; - reads them from stdin
//	--since TIME        reconcile: the time before which every event is known to have arrived
//	--until TIME        reconcile: the end of the gap; now by default
//	--calls NUMBER      reconcile: how many calls of the API to make at most; 1000 by default, of 25,000 in 12 hours
//	--resume-at CURSOR  reconcile: go on where a run was paused, with the cursor that it printed
//	--every DURATION    recover: how often to look at the queue; 5s by default
//	--version           print the version
//
// The environment has what must be in no shell's history and no list of processes:
//
//	ASAAS_API_KEY       the API key, in single quotes because of its $
//	ASAAS_WEBHOOK_TOKEN recover: the webhook's token, as the application verifies with it
//	DATABASE_URL        the application's database; without it, what is owed is not reported. It may lack what the
//	                    environment variables of Postgres's own programs say, PGPASSWORD for example
//	ASAAS_BASE_URL      the API's address, for a fake Asaas for example: http://127.0.0.1:8090/v3
//	XDG_CACHE_HOME      where it is noted when a penalty was removed, so that it is not removed twice in a minute by
//	                    whoever uses this machine's account; as os.UserCacheDir says
//	HTTPS_PROXY, HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR as of any Go program
//
// SIGINT, SIGTERM and SIGHUP end it; it says what was and what was not changed.
//
// The time left counts from the creation of an event, which package idem does not
// keep once an event is done: hence --last-event. Asaas keeps events for 14 days.
//
// The exit status is 0 if all is well; 1 if a queue is held up or was not recovered,
// a webhook is disabled, events are owed, never came, or are handled and not subscribed to; 2 if
// asaas-queue was used in a wrong way, or Asaas or the database did not answer as
// they should. Of go run it is 1 for both.
package main

import "github.com/paghooks/paghooks/asaas/cmd/queue"

func main() { new(queue.Command).Main() }
