package zeltapay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Parse decodes a body that has been verified. Fields that this package does
// not know are skipped; the types it does not know become an [*UnknownEvent].
// An error means that the body is not JSON, has no type, or does not fit its
// type's fields.
//
// A payment in a layout that is neither of the known two is no error, though its
// fields are empty: [PaymentEvent.Check] tells. Before a handler it is called.
func Parse(body []byte) (Event, error) {
	said := headOf(body).Type
	if said == "" {
		return nil, errors.New("zeltapay: the body is not an event: it is no JSON object with a type")
	}
	var e Event = new(UnknownEvent)
	if create := newEvent[said]; create != nil {
		e = create()
	}
	if err := json.Unmarshal(body, e); err != nil {
		return nil, fmt.Errorf("zeltapay: a %s does not decode: keep the body, and look for a newer version of this module: %w", said, err)
	}
	return e, nil
}

// Identify names a verified body's event, for [idem.Processor.Accept] and the
// like. It never fails: a body that cannot be read has no Type, and an ID made
// by [idem.BodyID]. Scope is left to the caller.
//
// The ID is the body's eventId. A payment.success without one (the nested
// layout) is named by its transaction, payment.success:<transaction.id>. The
// Zeltapay-Event-Id header is not used: it is not signed, and who repeats a
// delivery can change it.
//
// The Type of a payment.success whose transaction.isTest is true is
// [EventTestPayment], so that no handler takes it for money: see
// [Dispatcher.AllowTest].
//
// The body is not decoded, only looked through for what names it: a field that
// does not fit its type is found when the event is routed to a handler.
func Identify(body []byte) idem.Event {
	e, _ := identify(body)
	return e
}

func identify(body []byte) (idem.Event, head) {
	h := headOf(body)
	return idem.Event{
		Source:     sourceName,
		ID:         h.id(body),
		Type:       string(h.eventType()),
		Key:        h.key(),
		OccurredAt: h.occurredAt(),
		Payload:    body,
	}, h
}

func (h head) id(body []byte) string {
	switch {
	case h.EventID != "":
		return h.EventID
	case h.Type == EventPaymentSuccess && h.transactionID != "":
		// Only this type: a transaction succeeds once, but may well be, say,
		// refunded twice.
		return string(h.Type) + ":" + h.transactionID
	}
	return idem.BodyID(body)
}

func (h head) key() string {
	if h.Type != EventPaymentSuccess {
		return ""
	}
	return cmp.Or(h.paymentLinkID, h.linkID)
}

// occurredAt is the event's own time, or zero when there is none to read.
func (h head) occurredAt() time.Time {
	said := []Time{h.createdAt}
	switch h.Type {
	case EventPaymentSuccess:
		said = append(said, cmp.Or(h.paidAt, h.completedAt))
	case EventWebhookPing:
		said = append(said, h.sentAt)
	}
	for _, t := range said {
		if at, err := t.Time(); err == nil {
			return at
		}
	}
	return time.Time{}
}
