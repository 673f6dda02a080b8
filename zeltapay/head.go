package zeltapay

import (
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/peek"
)

// head is what names an event. It is found without decoding the rest, and is
// what decoding finds; an event whose rest does not decode has the name that it
// will have once it does.
type head struct {
	EventID, paymentLinkID, linkID   string
	Type                             EventType
	createdAt, sentAt                Time
	transactionID, externalPaymentID string
	paidAt, completedAt              Time
	isTest                           bool
}

// headOf is empty for a body that is not a whole JSON object.
func headOf(body []byte) (h head) {
	whole := peek.Members(body, func(name, value []byte) {
		switch {
		case peek.Is(name, "type"):
			peek.String(value, (*string)(&h.Type))
		case peek.Is(name, "eventId"):
			readName(value, &h.EventID)
		case peek.Is(name, "createdAt"):
			nullable(value, (*string)(&h.createdAt))
		case peek.Is(name, "sentAt"):
			nullable(value, (*string)(&h.sentAt))
		case peek.Is(name, "paymentLinkId"):
			nullable(value, &h.paymentLinkID)
		case peek.Is(name, "paymentLink"):
			h.link(value)
		case peek.Is(name, "transaction"):
			h.transaction(value)
		}
	})
	if !whole {
		return head{}
	}
	return h
}

// link reads a paymentLink. The last of several counts, with all that it lacks.
func (h *head) link(object []byte) {
	h.linkID = ""
	peek.Members(object, func(name, value []byte) {
		if peek.Is(name, "id") {
			nullable(value, &h.linkID)
		}
	})
}

// transaction reads a transaction. The last of several counts, with all that it
// lacks.
func (h *head) transaction(object []byte) {
	h.transactionID, h.externalPaymentID, h.paidAt, h.completedAt, h.isTest = "", "", "", "", false
	peek.Members(object, func(name, value []byte) {
		switch {
		case peek.Is(name, "id"):
			readName(value, &h.transactionID)
		case peek.Is(name, "externalPaymentId"):
			nullable(value, &h.externalPaymentID)
		case peek.Is(name, "paidAt"):
			nullable(value, (*string)(&h.paidAt))
		case peek.Is(name, "completedAt"):
			nullable(value, (*string)(&h.completedAt))
		case peek.Is(name, "isTest"):
			h.isTest = string(value) == "true"
		}
	})
}

// readName reads what names an event. One that is not valid Unicode is hashed as it is
// written: decoded, all such names were one.
func readName(value []byte, s *string) {
	if nullable(value, s); peek.Lossy(value) {
		*s = idem.BodyID(value)
	}
}

// nullable reads an optional.Value, to which null is nothing.
func nullable(value []byte, s *string) {
	if string(value) == "null" {
		*s = ""
	}
	peek.String(value, s)
}
