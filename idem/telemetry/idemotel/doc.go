// Package idemotel traces and measures package idem with OpenTelemetry. It makes a
// span for each delivery and each attempt, and metrics of their outcomes, their
// durations, and the waiting events. It needs only OpenTelemetry's API; the application
// brings the SDK and its exporters.
//
//	telemetry, err := idemotel.New(idemotel.Settings{}) // the global providers
//	if err != nil {
//		return err
//	}
//	telemetry.Instrument(inbox) // before the first event
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
// The names are stable. They are those of package idemprom, whose table has all, in
// OpenTelemetry's spelling: webhook.deliveries is the counter webhook_deliveries_total there,
// and webhook.delivery.duration, in seconds, the histogram webhook_delivery_duration_seconds.
// Exporters to Prometheus usually spell them so, too: idemprom's dashboard and alerts fit.
//
// The gauges are read from the database at most every 15 seconds, however many readers a
// MeterProvider has. Every instrumented process reports the same backlog: take the maximum
// over processes, not the sum.
package idemotel
