// Package health answers monitors whether the receivers of a program are healthy:
//
//	canary := asaas.NewCanary("https://shop.example/webhooks/asaas", token)
//	http.Handle("GET /health/webhooks", health.New(inbox, canary))
//
// A [Health] calls the method Examine of each part of a program; parts of the
// application's own can have one. It answers 200 if all checks below pass, and 503
// otherwise. The body has the result of each check and, for one that fails, the remedy:
//
//	{"healthy":false,"checks":[{"source":"asaas","check":"deliveries","healthy":false,"says":"5 deliveries have failed in a row: …"}, …]}
//
// The body has no secrets and no personal data. The only ids in it are those of an entity
// that stands still and of the event that it waits for. Health asks for no password: if
// these ids, or failures, must not be public, protect its path.
//
// The checks are:
//
//	postgres    it answers within Timeout, and can be written to
//	deliveries  fewer than MaxFailures genuine ones in a row have failed in this process; it names
//	            the reasons: empty_body, body_too_large, body_not_whole, handler_failed, not_stored,
//	            or that of a refusal with the right secret
//	refused     the provider's deliveries are not refused: see below
//	silence     a genuine delivery that names an event has come to this process within MaxSilence,
//	            if that is set
//	handlers    fewer than MaxFailures different events in a row have failed in the
//	            workers of this process
//	answer within
//	            with WorkFirst: AnswerWithin has ended at most one in twenty of the last first tries, of
//	            which the handlers run again in workers
//	retrying    no event has failed for longer than MaxRetrying, or was started more than
//	            ten times by workers, whether that counted as a failure or not
//	parked      fewer than MaxParked events are parked and not acknowledged: see
//	            operator.Operator.PlanAcknowledge and idem acknowledge
//	workers     no event that workers are to process has been due for longer than
//	            MaxPending; for 15 seconds, where no workers are alive
//	held        no event waits for a parked one of its entity
//	scopes      of a source that gives every event a scope: none is stored without one. It would
//	            be done again if it came again: see idem help rescope
//	broker      the broker of an Outbox has not been unavailable for longer than MaxPending
//	clock       no event of an Inbox arrived in the future: the database's clock was put
//	            back, and workers wait until it is that late again
//	canary      it runs, and has not failed twice in a row; one of a relay fails if no
//	            consumer handles it
//	unmatched   of a charges.Unmatched: each paid charge matches something of the application's
//	overpaid    of a charges.Overpaid: no order got more than its total
//	reconcile   of a charges.Daily: its runs come to their end, and each charge could be copied and applied
//	webhook     of a webhook.Watch of asaas: the webhook is enabled, and subscribed to all types
//	            that the application handles
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
// Otherwise it passes and reports the count. A canary does not count, because it has the
// application's own secret.
//
// With AllowFrom, another customer of Asaas could make health red by giving a
// webhook your URL.
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
// not return, fails. The retrying, held and parked checks read all events that are not done,
// so each of them takes at most a twentieth of the time. Where that takes longer than Timeout,
// with some hundred thousand such events, a check looks at 100,000 of them, and says so.
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
