// Package health tells monitors how the receivers of a program are:
//
//	canary := asaas.NewCanary("https://shop.example/webhooks/asaas", token)
//	http.Handle("GET /health/webhooks", health.New(inbox, canary))
//
// A [Health] asks each part of a program how it is, by its method Examine. Parts of the
// application's own can have one. It answers 200 if all checks below pass, and 503
// otherwise. The body has the result of each check and, for one that fails, the remedy:
//
//	{"healthy":false,"checks":[{"source":"asaas","check":"deliveries","healthy":false,"says":"5 deliveries have failed in a row: …"}, …]}
//
// It has no secrets and no personal data, and no ids but those of an entity that stands
// still and of the event that it waits for. Health asks for no password: if these are not
// public, or that deliveries fail, protect its path.
//
// The checks are:
//
//	postgres    it answers within Timeout, and can be written to
//	deliveries  fewer than MaxFailures in a row have failed in this process
//	refused     the provider's deliveries are not refused: see below
//	silence     genuine deliveries come to this process: where MaxSilence says how often
//	handlers    fewer than MaxFailures different events in a row have failed in the
//	            workers of this process
//	retrying    no event has failed for longer than MaxRetrying
//	parked      fewer than MaxParked events are parked that nobody has acknowledged: see
//	            operator.Operator.Acknowledge and idem acknowledge
//	workers     no event that workers are to process has been due for longer than
//	            MaxPending
//	held        no event waits for a parked one of its entity
//	broker      the broker of an Outbox has not been unavailable for longer than MaxPending
//	clock       no event of an Inbox arrived in the future: the database's clock was put
//	            back, and workers wait until it is that late again
//	spool       no event has been in an Inbox's Spool for longer than MaxSpooled, a
//	            fifth of it is free, files can be read and written, and nothing has
//	            been set aside
//	canary      it runs, and has not failed twice in a row; one of a relay fails where no
//	            consumer handles it
//
//	webhook     of an asaas.WebhookWatch: it is enabled, and subscribed to all that the
//	            application handles
//
// # Refused deliveries
//
// A delivery that is not genuine does not count as failed, unless the reason is that
// no secret is configured: strangers must not make health red. A token that was
// changed on one side looks the same. It is told apart, by path, in two ways: MaxFailures
// deliveries in a row that come from the provider's addresses and are refused, which needs
// the AllowFrom of package asaas; or as many that are refused for their secret while no
// genuine one has come for ten minutes, and for more than twice the longest pause that
// this process has seen. Otherwise the check passes and says the count. A canary does not
// count: it has the application's own secret.
//
// So without AllowFrom a token that is wrong from the start of the process is only a
// count. With it, another customer of Asaas could make health red, by giving a webhook
// your URL.
//
// # Blind spots
//
// Events that never come, as long as the webhook is in order: see asaas.Reconcile. A
// webhook that is disabled or deleted, without an asaas.WebhookWatch. Alert on the metrics,
// too: health knows this process only, and Postgres.
//
// The checks run once a second at most, however many requests come; concurrent
// requests share a run. The parts are asked at the same time. One that panics, or does
// not answer, fails. The retrying, held and parked checks read all events that are not done,
// so each runs at most a twentieth of the time. With some hundred thousand such events
// it takes longer than Timeout: then it says that it does not know, and passes.
//
// # Alert on it, do not restart because of it
//
// Do not use it as a liveness probe in Kubernetes: a restart does not bring Postgres
// back, and cuts off deliveries. For liveness use [New]() without parts, which
// is healthy as long as the process serves, or a TCP probe.
//
// As a readiness probe it does harm when all replicas have the same problem: an
// address without a ready replica fails every delivery, also those that would have
// succeeded. The canary's fail, too, and then keep all replicas from becoming ready
// again. For readiness, leave canaries out, or use New().
package health
