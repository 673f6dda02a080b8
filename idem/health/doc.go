// Package health answers monitors whether the receivers of a program are healthy:
//
//	canary := asaas.NewCanary("https://shop.example/webhooks/asaas", token)
//	http.Handle("GET /health/webhooks", health.New(inbox, canary))
//
// A [Health] calls the method Examine of each part of a program; parts of the
// application's own can have one. It answers 200 if all checks below pass, and 503
// otherwise. The body has the result of each check and, for one that fails, what to do, and the command:
//
//	{"healthy":false,"checks":[{"source":"asaas","check":"parked","healthy":false,"says":"1 event is parked, …","remedy":"…","command":"idem requeue …"}, …]}
//
// A check with "warning" passes, and somebody should look at it soon. One with "unknown" passes because it could not be
// looked at.
//
// The body has no secrets and no personal data. The only ids in it are those of a
// parked event, and of the entity that it holds. Health asks for no password: if
// these ids, or failures, must not be public, protect its path.
//
// The checks are, those that explain others first:
//
//	postgres    it answers within Timeout, can be written to, and its tables can be read; a warning
//	            if the pool has one connection
//	webhook     of a webhook.Watch of asaas: the webhook is enabled, and subscribed to all types
//	            that the application handles
//	refused     the provider's deliveries are not refused: see below
//	deliveries  fewer than MaxFailures genuine ones in a row have failed in this process; it names
//	            the reasons: empty_body, body_too_large, body_not_whole, handler_failed, not_stored,
//	            or that of a refusal with the right secret
//	silence     a genuine delivery that names an event has come to this process within MaxSilence,
//	            if that is set
//	canary      it runs, and has not failed twice in a row; one of a relay fails if no
//	            consumer handles it
//	handlers    fewer than MaxFailures different events in a row have failed in the
//	            workers of this process
//	workers     no event that workers are to process has been due for longer than
//	            MaxPending; for 15 seconds, where no workers are alive
//	clock       no event of an Inbox arrived in the future: the database's clock was put
//	            back, and workers wait until it is that late again
//	failing     no event has failed for longer than MaxFailing, or was started more than
//	            ten times by workers, whether that counted as a failure or not; until then a warning
//	parked      fewer than MaxParked events are parked and not acknowledged: see
//	            operator.Operator.PlanAcknowledge and idem acknowledge
//	standing    no event waits for a parked one of its entity
//	answer within
//	            with WorkFirst: AnswerWithin has ended at most one in twenty of the last first tries, of
//	            which the handlers run again in workers
//	broker      the broker of an Outbox has not been unavailable for longer than MaxPending
//	scopes      of a source that gives every event a scope: none is stored without one. It would
//	            be done again if it came again: see idem help rescope
//	unmatched   of a charges.Unmatched: each paid charge matches something of the application's
//	overpaid    of a charges.Overpaid: no order got more than its total
//	reconcile   of a charges.Daily: its runs come to their end, and each charge could be copied and applied
//	statement   of a charges.Daily: the charges agree with the account's statement
//	answer      each part of the program answers, and does not panic
//
// # Refused deliveries
//
// A delivery that is not genuine does not count as failed, unless no secret is
// configured: strangers must not make health red. One with the right secret counts, whatever
// it is refused for. A token that was changed on one side
// only looks like a stranger's. The check fails if a webhook.Watch of asaas has seen the provider count more failed
// deliveries from one look to the next, and since the first of the two looks none was genuine, and one was refused. It
// also fails, for each path by itself, in four cases:
//
//   - MaxFailures deliveries with different bodies were signed by the right secret, and refused for their time:
//     a clock is wrong.
//   - MaxFailures deliveries have the same wrong token, over more than five minutes, and none of them
//     between was genuine: it was changed on one side.
//   - MaxFailures deliveries in a row come from the provider's addresses and are refused.
//     That needs the AllowFrom of package asaas.
//   - MaxFailures deliveries in a row are refused for their secret, while no genuine one
//     has come for ten minutes, and for more than twice the longest pause that this
//     process has seen.
//
// Otherwise it passes and reports the count, with a warning if two deliveries since the last genuine one have the same
// wrong token: strangers could send them. A canary does not count, because it has the
// application's own secret.
//
// With AllowFrom, another customer of Asaas could make health red by giving a
// webhook your URL.
//
// # Telling somebody
//
// A [Notifier] tells somebody when a check fails, and when that is over, without a monitoring system: by an e-mail, or
// in a chat. It replaces no monitor from outside: when no process runs, nobody tells.
//
// # Blind spots
//
// Health does not notice single events that never come: asaas/charges.Reconcile books what they would have
// told. Without a Watch of asaas/webhook it does not notice that a webhook is disabled or deleted. It sees
// only this process and Postgres, so alert on the metrics, too.
//
// # Cost
//
// The checks run once a second at most, however many requests come; concurrent
// requests share a run. The parts are examined at the same time. A part that panics, or does
// not return, fails. One statement reads all events that are not done, for all checks of them, and
// takes at most a twentieth of the time: 1.1 s for 100,000 such events on a small machine. Where it takes longer than
// Timeout, it looks at 100,000 of them, and the checks say so.
//
// # Alert on it, do not restart because of it
//
// Do not use it as a liveness probe in Kubernetes: a restart does not bring Postgres
// back, and cuts off deliveries. For liveness use [New]() without parts, which
// is healthy as long as the process serves, or a TCP probe.
//
// As a readiness probe it does harm when all replicas have the same problem: an
// address without a ready replica fails every delivery, and those of a canary keep all
// replicas from becoming ready again. For readiness, leave canaries out, or use New().
package health
