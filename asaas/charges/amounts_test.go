package charges_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/value"
)

func TestTheAmountsFollowFromTheStatusAndTheRefunds(t *testing.T) {
	t.Parallel()
	done, pending, canceled := refund("DONE", 1000), refund("PENDING", 1000), refund("CANCELLED", 1000)
	for name, c := range map[string]struct {
		status                              asaas.PaymentStatus
		settled                             bool
		refunds                             []asaas.Refund
		paid, received, refunded, refunding string
	}{
		"not paid":                                  {status: "PENDING", paid: "0"},
		"authorized, not captured":                  {status: "AUTHORIZED", paid: "0"},
		"under analysis":                            {status: "AWAITING_RISK_ANALYSIS", paid: "0"},
		"late":                                      {status: "OVERDUE", paid: "0"},
		"with the bureau":                           {status: "DUNNING_REQUESTED", paid: "0"},
		"recovered by the bureau":                   {status: "DUNNING_RECEIVED", paid: "100", received: "100"},
		"paid, its money to come":                   {status: "CONFIRMED", paid: "100"},
		"its money has come":                        {status: "RECEIVED", settled: true, paid: "100", received: "100"},
		"in cash":                                   {status: "RECEIVED_IN_CASH", settled: true, paid: "100", received: "100"},
		"a part of a card given back":               {status: "CONFIRMED", refunds: []asaas.Refund{done}, paid: "90", refunded: "10"},
		"two parts given back":                      {status: "RECEIVED", settled: true, refunds: []asaas.Refund{done, done}, paid: "80", received: "80", refunded: "20"},
		"a part asked back":                         {status: "RECEIVED", settled: true, refunds: []asaas.Refund{pending}, paid: "100", received: "100", refunding: "10"},
		"a refund called off":                       {status: "RECEIVED", settled: true, refunds: []asaas.Refund{canceled}, paid: "100", received: "100"},
		"asked back, no amount yet":                 {status: "RECEIVED", settled: true, refunds: []asaas.Refund{{Status: value.Of(asaas.RefundStatusPending)}}, paid: "100", received: "100", refunding: "100"},
		"of a refund only the amount":               {status: "RECEIVED", settled: true, refunds: []asaas.Refund{{Value: value.Of(asaas.Cents(1000))}}, paid: "100", received: "100", refunding: "10"},
		"to be given back, its money is here":       {status: "REFUND_IN_PROGRESS", settled: true, paid: "0", received: "100"},
		"to be given back, its money never came":    {status: "REFUND_IN_PROGRESS", paid: "0"},
		"a boleto asked back":                       {status: "REFUND_REQUESTED", settled: true, refunds: []asaas.Refund{refund("PENDING", 10000)}, paid: "0", received: "100"},
		"given back":                                {status: "REFUNDED", settled: true, refunds: []asaas.Refund{refund("DONE", 10000)}, paid: "0", refunded: "100"},
		"given back without a refund":               {status: "REFUNDED", settled: true, paid: "0", refunded: "100"},
		"given back, of a refund without an amount": {status: "REFUNDED", refunds: []asaas.Refund{{Status: value.Of(asaas.RefundStatusDone)}}, paid: "0", refunded: "100"},
		"disputed":                                  {status: "CHARGEBACK_REQUESTED", settled: true, paid: "0"},
		"disputed, with evidence":                   {status: "CHARGEBACK_DISPUTE", settled: true, paid: "0"},
		"dispute won, its money to come back":       {status: "AWAITING_CHARGEBACK_REVERSAL", settled: true, paid: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := payment(c.status, c.refunds...)
			if c.settled {
				p.PaymentDate = value.Of(asaas.Date("2026-08-08"))
			}
			got, err := charges.ChargeOf(&p)
			if err != nil {
				t.Fatal(err)
			}
			for _, amount := range []struct {
				name string
				got  asaas.Money
				want string
			}{{"paid", got.Paid, c.paid}, {"received", got.Received, c.received}, {"refunded", got.Refunded, c.refunded}, {"refunding", got.Refunding, c.refunding}} {
				if want, _ := value.ParseDecimal(cmp.Or(amount.want, "0")); amount.got != want {
					t.Errorf("%s is %s, want %s", amount.name, amount.got, want)
				}
			}
		})
	}
}

func TestEveryKnownStatusHasItsAmounts(t *testing.T) {
	t.Parallel()
	for _, eventType := range asaastest.Types() {
		e, err := asaas.Parse(asaastest.Event(eventType))
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := e.(*asaas.PaymentEvent); ok {
			if _, err := charges.ChargeOf(&e.Payment); err != nil {
				t.Errorf("%s: %v", eventType, err)
			}
		}
	}
}

// A guess would be booked. An event that is parked is seen.
func TestWhatSaysTooLittleAboutMoneyIsParked(t *testing.T) {
	t.Parallel()
	noAmount := asaas.Refund{Status: value.Of(asaas.RefundStatusDone)}
	for name, c := range map[string]struct {
		change []asaastest.Change
		says   string
	}{
		"no time":                        {[]asaastest.Change{asaastest.Set("dateCreated", nil)}, "has no time"},
		"a time that cannot be read":     {[]asaastest.Change{asaastest.Set("dateCreated", "yesterday")}, "has no time"},
		"a newer status":                 {[]asaastest.Change{asaastest.Set("payment.status", "REFUND_APPEALED")}, `"REFUND_APPEALED"`},
		"a newer status of a refund":     {[]asaastest.Change{asaastest.Set("payment.refunds", []asaas.Refund{refund("RETURNED", 1000)})}, `"RETURNED"`},
		"a refund done without amount":   {[]asaastest.Change{asaastest.Set("payment.refunds", []asaas.Refund{noAmount})}, "no amount"},
		"more refunds than money":        {[]asaastest.Change{asaastest.Set("payment.refunds", slices.Repeat([]asaas.Refund{refund("DONE", 1e15-1)}, 1000))}, "were given back"},
		"more given back than was asked": {[]asaastest.Change{asaastest.Set("payment.refunds", []asaas.Refund{refund("DONE", 1e8)})}, "were given back"},
		"a negative value":               {[]asaastest.Change{asaastest.Set("payment.value", asaas.Cents(-100))}, "R$ -1.00"},
		"a value with less than cents":   {[]asaastest.Change{asaastest.Set("payment.value", json.Number("1.001"))}, "R$ 1.001"},
		"an id that is not Unicode":      {[]asaastest.Change{asaastest.Set("payment.id", json.RawMessage("\"pay_\xff1\""))}, "is no text"},
		"an id that cannot be stored":    {[]asaastest.Change{asaastest.Set("payment.id", "pay_\x001")}, "is no text"},
		"a refund that takes more":       {[]asaastest.Change{asaastest.Set("payment.refunds", []asaas.Refund{refund("DONE", -1000)})}, "R$ -10.00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			state, says := deliver(t, pool, newEvents(book), asaastest.Event(asaas.EventPaymentReceived, c.change...))
			if state != "parked" || !strings.Contains(says, c.says) {
				t.Errorf("the event is %s with the error %q, want it parked with %q", state, says, c.says)
			}
			if rows := query(t, pool, `select count(*) from asaas_charges`); rows != "0" {
				t.Errorf("%s rows were made", rows)
			}
		})
	}
}

// payment is a charge of R$ 100.00.
func payment(status asaas.PaymentStatus, refunds ...asaas.Refund) asaas.Payment {
	p := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000)).Payment
	p.Status, p.Refunds = status, value.Of(refunds)
	return p
}

func refund(status asaas.RefundStatus, cents int64) asaas.Refund {
	return asaas.Refund{Status: value.Of(status), Value: value.Of(asaas.Cents(cents))}
}
