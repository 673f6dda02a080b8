package charges_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
)

// Whatever stands in a charge, its amounts are those of a charge, or there are none.
func FuzzAmounts(f *testing.F) {
	for _, life := range asaastest.Lives("order-1") {
		for _, body := range life.Bodies {
			f.Add(body)
		}
	}
	f.Add([]byte(`{"payment":{"status":"RECEIVED","value":900000000000000000,"refunds":[{"status":"DONE","value":1e17},{"status":"DONE","value":0.000000001}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var e asaas.PaymentEvent
		if json.Unmarshal(body, &e) != nil {
			return
		}
		c, err := charges.ChargeOf(&e.Payment)
		if err != nil {
			return
		}
		zero, given := asaas.Money{}, c.Paid
		if c.Received.Cmp(given) > 0 {
			given = c.Received // asked back, and still here
		}
		for name, ok := range map[string]bool{
			"something is negative":                       zero.Cmp(c.Value) <= 0 && zero.Cmp(c.Refunded) <= 0 && zero.Cmp(c.Refunding) <= 0 && zero.Cmp(c.Paid) <= 0 && zero.Cmp(c.Received) <= 0,
			"more is paid, or given back, than the value": given.Add(c.Refunded).Cmp(c.Value) <= 0,
			"more is asked back than is paid":             c.Refunding.Cmp(c.Paid) <= 0,
			"a part of a cent is paid":                    c.Paid.Round(2) == c.Paid && c.Received.Round(2) == c.Received,
		} {
			if !ok {
				t.Errorf("%s: %+v", name, c)
			}
		}
		for _, day := range []asaas.Date{c.Created, c.Due, c.Credited, c.ReceivedOn} {
			if _, err := day.Time(); day != "" && err != nil {
				t.Errorf("%q is no day", day)
			}
		}
	})
}

func FuzzNumberOf(f *testing.F) {
	for _, id := range []string{"evt_05b708f961d739ea7eba7e4db318f621&368604920", "evt_001", "", "&", "evt_a&-1", "evt_a&+1", "evt_a&99999999999999999999", "evt_a&1&2"} {
		f.Add(id, int64(7))
	}
	f.Fuzz(func(t *testing.T, id string, n int64) {
		if charges.NumberOf(id) < 0 {
			t.Errorf("the number of %q is %d", id, charges.NumberOf(id))
		}
		if n >= 0 {
			if got := charges.NumberOf(id + "&" + strconv.FormatInt(n, 10)); got != n {
				t.Errorf("the number behind %q is %d, want %d", id, got, n)
			}
		}
	})
}
