package idemotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/paghooks/paghooks/idem"
)

// messaging holds the names of the semantic conventions for messaging, version 1.43:
// https://opentelemetry.io/docs/specs/semconv/messaging/messaging-metrics/
type messaging struct {
	consumed metric.Int64Counter
	process  metric.Float64Histogram
}

// The conventions say how to divide a process's duration.
var messagingDurations = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

func newMessaging(meter metric.Meter) (*messaging, error) {
	consumed, err := meter.Int64Counter("messaging.client.consumed.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Number of messages that were delivered to the application."))
	process, err2 := meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of processing operation."), metric.WithExplicitBucketBoundaries(messagingDurations...))
	return &messaging{consumed, process}, errors.Join(err, err2)
}

const (
	messagingSystem    = "webhook"
	messagingOperation = "process"
)

// record counts an event that was processed, well or not. m may be nil.
func (m *messaging) record(ctx context.Context, o idem.Observation) {
	if m == nil || !handled(o.Outcome) || o.Event.ID == "" {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", messagingSystem),
		attribute.String("messaging.operation.name", messagingOperation),
		attribute.String("messaging.destination.name", o.Source),
	}
	if o.Err != nil {
		attributes = append(attributes, attribute.String("error.type", string(o.Outcome)))
	}
	m.consumed.Add(ctx, 1, metric.WithAttributes(attributes...))
	m.process.Record(ctx, o.Duration.Seconds(), metric.WithAttributes(attributes...))
}

// handled reports whether an outcome is that of processing: a delivery that an inbox
// stored is not.
func handled(o idem.Outcome) bool {
	switch o {
	case idem.Done, idem.Retrying, idem.Parked, idem.Unknown:
		return true
	}
	return false
}

func messagingAttributes(source string, e idem.Event) []attribute.KeyValue {
	a := []attribute.KeyValue{
		attribute.String("messaging.system", messagingSystem),
		attribute.String("messaging.operation.name", messagingOperation),
		attribute.String("messaging.operation.type", messagingOperation),
		attribute.String("messaging.destination.name", source),
	}
	if e.ID != "" {
		a = append(a, attribute.String("messaging.message.id", e.ID))
	}
	return a
}
