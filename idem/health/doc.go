// Package health tells monitors how the receivers of a program are:
//
//	canary := asaas.NewCanary("https://shop.example/webhooks/asaas", token)
//	http.Handle("GET /health/webhooks", health.New(inbox, canary))
//
// A [Health] asks each part of a program how it is, by its method Examine. Parts of the
// application's own can have one. It answers 200 if all checks below pass, and 503
// otherwise. The body has the result of each check and, for one that fails, what to do:
//
//	{"healthy":false,"checks":[{"source":"asaas","check":"deliveries","healthy":false,"says":"5 deliveries have failed in a row: …"}, …]}
//
// It has no secrets and no personal data, and no ids but those of an entity that stands
// still and of the event that it waits for. Health asks nobody for a password:
// if not everybody may know these, or that deliveries fail, protect its path.
//
// The checks are:
//
//	postgres    it answers within Timeout, and can be written to
//	deliveries  fewer than MaxFailures in a row have failed in this process
//	retrying    no event of a Processor has failed for longer than MaxRetrying
//	workers     no event that workers are to process has been due for longer than
//	            MaxPending
//	held        no event waits for a parked one of its entity
//	broker      the broker of an Outbox has not been unavailable for longer than MaxPending
//	clock       no event of an Inbox arrived in the future: the database's clock was put
//	            back, and workers wait until it is that late again
//	spool       no event has been in an Inbox's Spool for longer than MaxSpooled, a
//	            fifth of it is free, files can be read and written, and nothing has
//	            been set aside
//	canary      it runs, and has not failed twice in a row
//
// A delivery that is not genuine does not count as failed, unless the reason is that
// no secret is configured.
//
// It does not see a wrong token at the provider, a webhook that is disabled or deleted,
// an inbox whose handlers all fail, a parked event that no other waits for, and events
// that never come. Alert on the metrics for those.
//
// The checks run once a second at most, however many requests come; concurrent
// requests share a run. The parts are asked at the same time. One that panics, or does
// not answer, fails. The retrying and held checks read all events that are not done,
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
