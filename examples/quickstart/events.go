package main

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/optional"
	"github.com/paghooks/paghooks/zeltapay"
)

// charge is a payment at Asaas. Its events are made as Asaas makes them.
type charge struct {
	number  int
	order   string // "" for money without an order
	amount  asaas.Money
	billing asaas.BillingType
}

// event is one of the charge's events. Its id is the same every time.
func (c charge) event(event asaas.EventType) message {
	today := asaas.Date(time.Now().In(asaas.Brasilia()).Format(time.DateOnly))
	return fromAsaas(string(event), asaas.PaymentEvent{
		Envelope: asaas.Envelope{
			ID:          fmt.Sprintf("evt_%x&%d", md5.Sum([]byte(event)), c.number),
			Event:       event,
			DateCreated: asaas.DateTime(today + " 12:00:00"),
		},
		Payment: asaas.Payment{
			Object:            "payment",
			ID:                fmt.Sprintf("pay_1_a1B2c3D4e5%d", c.number),
			Customer:          "cus_000005219613",
			Value:             c.amount,
			NetValue:          optional.Of(c.amount.Sub(asaas.Cents(99))),
			BillingType:       c.billing,
			Status:            statusAfter(event),
			DateCreated:       today,
			DueDate:           today,
			OriginalDueDate:   today,
			PaymentDate:       optional.Of(today),
			ExternalReference: reference(c.order),
		},
	})
}

func statusAfter(event asaas.EventType) asaas.PaymentStatus {
	if s := asaas.PaymentStatus(strings.TrimPrefix(string(event), "PAYMENT_")); s.Known() {
		return s
	}
	return asaas.PaymentStatusPending
}

func reference(order string) optional.Value[string] {
	if order == "" {
		return optional.Null[string]()
	}
	return optional.Of(order)
}

// link is a payment link at Zelta Pay.
type link struct {
	number int
	order  string
	amount zeltapay.Cents
	test   bool
}

// flat is payment.success as Zelta Pay's English pages show it.
func (l link) flat() message {
	return fromZeltapay(zeltapay.EventPaymentSuccess, zeltapay.PaymentEvent{
		Envelope: zeltapay.Envelope{
			EventID:   optional.Of(l.id("evt")),
			Type:      zeltapay.EventPaymentSuccess,
			CreatedAt: optional.Of(now()),
		},
		PaymentLinkID: optional.Of(l.id("pl")),
		Transaction: optional.Of(zeltapay.Transaction{
			ExternalPaymentID: optional.Of(l.id("nmi")),
			Amount:            optional.Of(l.amount),
			Currency:          optional.Of("USD"),
			PaidAt:            optional.Of(now()),
			IsTest:            optional.Of(l.test),
		}),
		Metadata: optional.Of(l.metadata()),
	})
}

// nested is the same event as the Spanish pages show it.
func (l link) nested() message {
	return fromZeltapay(zeltapay.EventPaymentSuccess, zeltapay.PaymentEvent{
		Envelope: zeltapay.Envelope{Type: zeltapay.EventPaymentSuccess},
		PaymentLink: optional.Of(zeltapay.PaymentLink{
			ID:       optional.Of(l.id("pl")),
			Amount:   optional.Of(l.amount),
			Metadata: optional.Of(l.metadata()),
		}),
		Transaction: optional.Of(zeltapay.Transaction{
			ID:          optional.Of(l.id("txn")),
			CompletedAt: optional.Of(now()),
		}),
	})
}

func (l link) id(kind string) string { return fmt.Sprintf("%s_%d", kind, l.number) }

func (l link) metadata() zeltapay.Metadata {
	return zeltapay.Metadata{"orderId": json.RawMessage(strconv.Quote(l.order))}
}

func ping() message {
	return fromZeltapay(zeltapay.EventWebhookPing, zeltapay.PingEvent{
		Envelope: zeltapay.Envelope{EventID: optional.Of("evt_ping"), Type: zeltapay.EventWebhookPing},
		OK:       optional.Of(true),
	})
}

func now() zeltapay.Time { return zeltapay.Time(time.Now().UTC().Format(time.RFC3339)) }
