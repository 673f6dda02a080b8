// Asaas-queue shows the queues of an account's webhooks at Asaas, and gets those
// going again that Asaas has slowed down or stopped:
//
//	export ASAAS_API_KEY='$aact_prod_…' ASAAS_WEBHOOK_TOKEN='the token of the webhook'
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue status
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue recover ID
//
// The verbs:
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
//	reconcile           compare the charge table with Asaas, and print what differs; it changes nothing
//	find NAME           the charges of a customer, cus_…, or of your own reference, from the charge table
//	filled              record that no other program has ever booked a charge of the account
//	unmatched           paid charges that match nothing of the application's, from the charge table
//
// help VERB prints all about one: what it does, its flags, and the variables of the environment that it reads.
// Secrets are read from there alone, and stand in no shell's history and no list of processes. Flags follow the verb;
// -sandbox, for an account in Asaas's sandbox, and -json, for one JSON object per line, may also stand before it.
//
// status, recover, remove-penalty, resume and enable end with the events that the application owes: those that are
// parked, fail, or wait for another one. They are in the database of DATABASE_URL. To replay them takes the
// application's handlers: package queue is this command for a program that has them, adds recover -replay, and has
// plan compare with its handlers.
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
