package charges_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
)

func TestADayIsProvedChargeByChargeAgainstTheStatement(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	on := func(billing asaas.BillingType) *asaastest.Charge {
		c := asaastest.NewCharge(billing, asaas.Cents(10000))
		c.Now = today
		return c
	}
	for _, c := range []struct {
		why        string
		billing    asaas.BillingType
		before     func(c *asaastest.Charge) [][]byte // came, and happened before the day
		happened   func(c *asaastest.Charge) [][]byte // on the day, at Asaas
		known      int                                // of those, that came
		want       string                             // the difference
		isUnjudged bool
	}{
		{
			why: "its event came", billing: asaas.BillingTypePix, known: 2,
			happened: func(c *asaastest.Charge) [][]byte { return [][]byte{c.Created(), c.Received()} },
		},
		{
			why: "the event of its money never came", billing: asaas.BillingTypePix, known: 1,
			happened: func(c *asaastest.Charge) [][]byte { return [][]byte{c.Created(), c.Received()} },
			want:     "R$ 100.00 came, and the table says that its money came on another day, or has not come: -",
		},
		{
			why: "no event of it came", billing: asaas.BillingTypePix,
			happened: func(c *asaastest.Charge) [][]byte { return [][]byte{c.Created(), c.Received()} },
			want:     "R$ 100.00 came and R$ 0.00 left, and the table has no row",
		},
		{
			why: "the event of its refund never came", billing: asaas.BillingTypePix, known: 2,
			happened: func(c *asaastest.Charge) [][]byte { return [][]byte{c.Created(), c.Received(), c.Refunded()} },
			want:     "R$ 100.00 left, and the table says that R$ 100.00 of R$ 100.00 are still here",
		},
		{
			why: "a part of it was given back", billing: asaas.BillingTypePix, known: 3,
			happened: func(c *asaastest.Charge) [][]byte {
				return [][]byte{c.Created(), c.Received(), c.PartiallyRefunded(asaas.Cents(3000))}
			},
		},
		{
			why: "a card that is given back before its money came moves nothing", billing: asaas.BillingTypeCreditCard, known: 3,
			happened: func(c *asaastest.Charge) [][]byte { return [][]byte{c.Created(), c.Confirmed(), c.Refunded()} },
		},
		{
			why: "cash is not at Asaas", billing: asaas.BillingTypeBoleto, known: 2, isUnjudged: true,
			happened: func(c *asaastest.Charge) [][]byte { return [][]byte{c.Created(), c.ReceivedInCash()} },
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			fake, client := newAccount(t)
			charge := on(c.billing)
			bodies := c.happened(charge)
			fake.Emit(bodies...)
			know(t, pool, bodies[:c.known]...)
			p, err := charges.Prove(t.Context(), client, pool, "", today)
			if err != nil {
				t.Fatal(err)
			}
			var want []charges.Difference
			if c.want != "" {
				want = []charges.Difference{{charge.Payment.ID, c.want}}
			}
			if diff := cmp.Diff(want, p.Differences); diff != "" {
				t.Errorf("differences of %s (-want +got):\n%s", p.Day, diff)
			}
			if got := len(p.NotJudged) == 1; got != c.isUnjudged {
				t.Errorf("not judged: %q, want the charge: %t", p.NotJudged, c.isUnjudged)
			}
		})
	}
}

func TestAMovementThatTheStatementLacksIsADifferenceAndAFeeIsNone(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	_, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	know(t, pool, c.Created(), c.Received()) // and Asaas knows nothing of it
	day, _ := c.Payment.PaymentDate.Or("").Time()
	client.Transport = answers(`{"hasMore":false,"data":[{"id":"fint_1","paymentId":null,"type":"PAYMENT_FEE","value":-1.99,"date":"2026-11-20"},
		{"id":"fint_2","paymentId":"pay_1","type":"SPLIT","value":-5,"date":"2026-11-20"}]}`)
	p, err := charges.Prove(t.Context(), client, pool, "", day)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]charges.Difference{{c.Payment.ID, "the table says that R$ 100.00 came, and the statement that nothing did"}}, p.Differences); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if got := p.Other["PAYMENT_FEE"].String() + " " + p.Other["SPLIT"].String(); got != "-1.99 -5.00" {
		t.Errorf("the other movements are %s, want -1.99 -5.00", got)
	}
}

func TestAProofEndsWhereAsaasWantsAPause(t *testing.T) {
	t.Parallel()
	fake, client := newAccount(t)
	fake.InjectAPI(asaastest.APIStatus(http.StatusTooManyRequests))
	if _, err := charges.Prove(t.Context(), client, newTables(t), "", time.Now()); err == nil || !strings.Contains(err.Error(), "prove the day again") {
		t.Errorf("Prove returned %v, want an error that says to try again", err)
	}
}

// answers answers each request with a body.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(string(a))),
	}, nil
}
