package main

import (
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// The charges and links of the shop, by their fate.
var (
	pix       = charge{1001, "A-1001", asaas.Cents(14990), asaas.BillingTypePix}
	boleto    = charge{1002, "A-1002", asaas.Cents(120000), asaas.BillingTypeBoleto}
	givenBack = charge{1003, "A-1003", asaas.Cents(5990), asaas.BillingTypePix}
	late      = charge{1004, "A-1004", asaas.Cents(7550), asaas.BillingTypeBoleto}
	unpaid    = charge{1005, "A-1005", asaas.Cents(8000), asaas.BillingTypePix}
	unasked   = charge{1006, "", asaas.Cents(2990), asaas.BillingTypePix}

	card   = link{number: 2001, order: "Z-2001", amount: 4900}
	yappy  = link{number: 2002, order: "Z-2002", amount: 2500}
	unused = link{number: 2003, order: "Z-2003", amount: 1234}
	trial  = link{number: 2004, order: "Z-2003", amount: 1234, test: true}
)

// orders holds the shop's sales until the day begins.
const orders = `
insert into orders (id, total, currency) values
	('A-1001', 149.90, 'BRL'), ('A-1002', 1200, 'BRL'), ('A-1003', 59.90, 'BRL'), ('A-1004', 75.50, 'BRL'), ('A-1005', 80, 'BRL'),
	('Z-2001', 49, 'USD'), ('Z-2002', 25, 'USD'), ('Z-2003', 12.34, 'USD');
insert into ledgers (currency) values ('BRL')`

// dollars opens a ledger at noon.
const dollars = `insert into ledgers (currency) values ('USD')`

// delivery is a line of the day: a message, how often it comes, and the answer and the effect that the
// shop must have.
type delivery struct {
	message
	about string
	times times
	want  string
}

type times struct {
	n      int
	atOnce bool // else one after the other
}

var (
	once       = times{n: 1}
	threeTimes = times{n: 3}
	tenAtOnce  = times{n: 10, atOnce: true}
)

func morning() []delivery {
	return []delivery{
		{pix.event(asaas.EventPaymentCreated), "A-1001", once, "200 pending, then done"},
		{pix.event(asaas.EventPaymentReceived), "A-1001, ten at once", tenAtOnce, "10 x 200: 1 pending, 9 duplicate, then done"},
		{pix.event(asaas.EventPaymentReceived), "A-1001, three times more", threeTimes, "3 x 200: 3 duplicate"},
		{pix.event(asaas.EventPaymentOverdue), "A-1001, late and out of order", once, "200 pending, then done"},
		{boleto.event(asaas.EventPaymentConfirmed), "A-1002, three times", threeTimes, "3 x 200: 1 pending, 2 duplicate, then done"},
		{boleto.event(asaas.EventPaymentReceived), "A-1002", once, "200 pending, then done"},
		{givenBack.event(asaas.EventPaymentReceived), "A-1003", once, "200 pending, then done"},
		{late.event(asaas.EventPaymentOverdue), "A-1004", once, "200 pending, then done"},
		{unpaid.event(asaas.EventPaymentReceived).withToken("a guess"), "A-1005, forged: a guessed token", once, "401 refused (wrong_token)"},
		{unpaid.event(asaas.EventPaymentCheckoutViewed), "A-1005, there is no handler", once, "200 pending, then unhandled"},
		{unpaid.event(asaas.EventPaymentBankSlipViewed), "A-1005, the shop ignores it", once, "200 ignored"},
		{unpaid.event("PAYMENT_BY_PIGEON"), "A-1005, nobody knows this type", once, "200 pending, then unhandled"},
		{ping(), "the dashboard's test", once, "200 ignored"},
		{card.flat(), "Z-2001, there is no USD ledger", once, "200 pending, then retrying"},
	}
}

func afternoon() []delivery {
	return []delivery{
		{card.flat(), "Z-2001 again, ten at once", tenAtOnce, "10 x 200: 10 duplicate"},
		{card.nested(), "Z-2001 in the other layout", once, "200 pending, then done"},
		{yappy.nested(), "Z-2002, other layout, three times", threeTimes, "3 x 200: 1 pending, 2 duplicate, then done"},
		{trial.flat(), "Z-2003, a test: no money moved", once, "200 ignored"},
		{unused.flat().changed(`"amount":1234`, `"amount":1`), "Z-2003, forged: changed on the way", once, "401 refused (wrong_signature)"},
		{card.flat().signedAt(time.Now().Add(-10 * time.Minute)), "Z-2001, recorded and sent again", once, "200 duplicate"},
		{unasked.event(asaas.EventPaymentCreated), "a Pix that nobody asked for", once, "200 pending, then done"},
		{unasked.event(asaas.EventPaymentReceived), "the same Pix, ten at once", tenAtOnce, "10 x 200: 1 pending, 9 duplicate, then done"},
		{givenBack.event(asaas.EventPaymentRefunded), "A-1003, three times", threeTimes, "3 x 200: 1 pending, 2 duplicate, then done"},
	}
}

// atNight returns the rows that the shop's database must hold then.
func atNight() holdings {
	return holdings{
		orders: []order{
			{"A-1001", asaas.Cents(14990), "BRL", "paid", asaas.Cents(14990), "1"},
			{"A-1002", asaas.Cents(120000), "BRL", "paid", asaas.Cents(120000), "2"},
			{"A-1003", asaas.Cents(5990), "BRL", "refunded", asaas.Cents(0), "3, 5"},
			{"A-1004", asaas.Cents(7550), "BRL", "overdue", asaas.Cents(0), ""},
			{"A-1005", asaas.Cents(8000), "BRL", "open", asaas.Cents(0), ""},
			{"Z-2001", asaas.Cents(4900), "USD", "paid", asaas.Cents(4900), "1"},
			{"Z-2002", asaas.Cents(2500), "USD", "paid", asaas.Cents(2500), "2"},
			{"Z-2003", asaas.Cents(1234), "USD", "open", asaas.Cents(0), ""},
			{"", asaas.Cents(0), "BRL", "not asked for", asaas.Cents(2990), "4"},
		},
		events: []eventCounts{
			{source: "asaas", done: 10, unhandled: 2, kept: "PAYMENT_BY_PIGEON, PAYMENT_CHECKOUT_VIEWED"},
			{source: "zeltapay", done: 3},
		},
	}
}
