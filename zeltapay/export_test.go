package zeltapay

import "github.com/paghooks/paghooks/idem"

// HeadIn is the event that a decoded body is.
func HeadIn(e Event, body []byte) idem.Event {
	v := e.envelope()
	h := head{EventID: v.EventID.Or(""), Type: v.Type, createdAt: v.CreatedAt.Or("")}
	switch e := e.(type) {
	case *PaymentEvent:
		h.transactionID, h.paidAt, h.isTest = e.transaction().ID.Or(""), e.PaidAt(), e.IsTest()
	case *PingEvent:
		h.sentAt = e.SentAt.Or("")
	}
	return idem.Event{
		Source: sourceName, ID: h.id(body), Type: string(h.eventType()), Key: e.key(), OccurredAt: h.occurredAt(), Payload: body,
	}
}
