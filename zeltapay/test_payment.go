package zeltapay

import (
	"context"
	"log/slog"

	"github.com/paghooks/paghooks/idem"
)

// EventTestPayment is the type of a payment.success in which no money moved:
// its transaction.isTest is true. Zelta Pay does not send this name. [Identify]
// gives it to the event, so that logs, metrics and the stored event show it.
const EventTestPayment EventType = "payment.success:test"

// eventType is the type in the body, or EventTestPayment.
func (h head) eventType() EventType {
	if h.Type == EventPaymentSuccess && h.isTest {
		return EventTestPayment
	}
	return h.Type
}

// providersType returns the type in the body of an event.
func providersType(eventType string) string {
	if eventType == string(EventTestPayment) {
		return string(EventPaymentSuccess)
	}
	return eventType
}

// logTest logs a test payment that is ignored.
func (d *Dispatcher) logTest(ctx context.Context, e idem.Event) {
	if e.Type != string(EventTestPayment) || !d.Ignores(e.Type) || d.Logger == nil {
		return
	}
	defer func() { _ = recover() }() // a panic of the logger leaves nobody to tell, and the delivery is genuine
	d.Logger.LogAttrs(ctx, slog.LevelInfo, "zeltapay: a test payment is ignored: no money moved; set AllowTest of the Dispatcher where handlers should get it",
		slog.String("scope", e.Scope), slog.String("id", e.ID), slog.String("link", e.Key))
}
