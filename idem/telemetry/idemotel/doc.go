// Package idemotel traces and measures package idem with OpenTelemetry. It makes a
// span for each delivery and each attempt, and metrics of their outcomes, their
// durations, and the waiting events. It needs only OpenTelemetry's API; the application
// brings the SDK and its exporters.
//
//	telemetry, err := idemotel.New(idemotel.Settings{}) // the global providers
//	if err != nil {
//		return err
//	}
//	telemetry.Instrument(&processor.Common) // before the first event
//	telemetry.WatchHealth(h.Report)         // what health.New returned
//
// # Spans
//
// "webhook delivery PAYMENT_RECEIVED" is a delivery, from its first byte to the
// answer; "webhook attempt PAYMENT_RECEIVED" is an attempt of an inbox's worker or
// of a replay. Handlers get a context with the span. The name has _other in place of
// a type that the application neither handles nor ignores. A refused delivery has
// no type.
//
// A delivery is a child of the span that the application has begun for the request,
// in an HTTP middleware for example. Otherwise it begins a trace, and links to the remote
// span that the context may have. It does not continue a trace of a traceparent header,
// because anyone can send one and would decide which traces are sampled. A middleware that
// continues it decides for its child, too: tell it that the endpoint is public, with
// otelhttp.WithPublicEndpointFn for example.
//
// An attempt begins a trace, and links to the delivery that stored the event, which
// may have been days ago, and to the span, if any, in which Replay was called.
// The inbox stores that link for deliveries that are sampled: 55 bytes, deleted with
// the payload.
//
// The attributes are webhook.source, webhook.type, webhook.event.id, webhook.scope,
// webhook.outcome, webhook.reason (refused deliveries) and webhook.conflict. Spans
// have no body and no entity. If a genuine event was not processed, the status is an
// error, with the text that is also logged: with personal data if your handlers'
// errors have any.
//
// # Metrics
//
// The names are stable. Durations are in seconds.
//
//	name                       kind       attributes              what it measures
//	webhook.deliveries         counter    source, type, outcome   deliveries, by what became of them
//	webhook.delivery.duration  histogram  source, type            from the first byte of a delivery to its answer
//	webhook.attempts           counter    source, type, outcome   attempts of an inbox's workers, and of replays
//	webhook.attempt.duration   histogram  source, type            from the start of an attempt to its end
//	webhook.lag                histogram  source, type            from the provider's time of an event to the commit of its work
//	webhook.relay.lag          histogram  source                  from a relay's publishing of an event to its arrival at a consumer
//	webhook.refused            counter    source, reason          deliveries that are not genuine
//	webhook.conflicts          counter    source                  deliveries with the id of an event that has another body
//	webhook.backlog.events     gauge      source, state           events that are pending, retrying, unhandled or parked
//	webhook.backlog.oldest     gauge      source, state           time since the oldest of them arrived; 0 if there is none
//	webhook.blocked.entities   gauge      source                  entities whose events wait for an earlier one
//	webhook.backlog.up         gauge      source                  1 if the three above could be read, else 0, and they are absent
//	webhook.queue.penalized    gauge      source, queue, name     failed deliveries that the provider counts against its queue
//	webhook.queue.interrupted  gauge      source, queue, name     1 if the provider has stopped its queue, else 0
//	webhook.queue.deletion     gauge      source, queue, name     time until the provider deletes the first of the events that wait; absent if unknown
//	webhook.queue.up           gauge      source                  1 if the three above could be read, else 0, and they are absent
//	webhook.check.found        gauge      source, check           what a check counts: charges that match nothing of the application's, for example; needs WatchHealth
//	webhook.healthy            gauge      source, check           1 if a check of package health passes, else 0; needs WatchHealth
//
// Counters that alerts are about are 0 from the start, for each type that has a handler.
// Outcomes are those of [idem.Outcome]; duplicates, for example, are deliveries with
// the outcome duplicate. The type is [idem.Observation].Label, so that strangers, which
// can invent types, cannot add series.
//
// The gauges are read from the database at most every 15 seconds, one source after
// the other, however many readers a MeterProvider has. Every instrumented process
// reports the same backlog: take the maximum over processes, not the sum.
//
// With the names that an exporter to Prometheus usually makes of them
// (webhook_deliveries_total), they are the metrics of package idemprom: its
// dashboard and its alerts fit.
//
// [Settings].Messaging adds OpenTelemetry's own names for messaging.
package idemotel
