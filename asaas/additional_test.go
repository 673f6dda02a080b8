package asaas_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestAdditionalInfoIsReadWhateverItIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, info     string
		splitID, message string
	}{
		{"the object of PAYMENT_SPLIT_DONE", `{"splitId":"3d9c","walletId":"w1"}`, "3d9c", ""},
		{"a message", `"Ajuste em 2 dias \u00fateis."`, "", "Ajuste em 2 dias úteis."},
		{"an object without a split", `{"message":"x"}`, "", ""},
		{"a split of null", `{"splitId":null}`, "", ""},
		{"a split that is no text", `{"splitId":7}`, "", ""},
		{"a list", `[{"splitId":"x"}]`, "", ""},
		{"a number", `7`, "", ""},
		{"null", `null`, "", ""},
	} {
		body := asaastest.Event("PAYMENT_SPLIT_DONE", asaastest.Set("additionalInfo", json.RawMessage(tt.info)))
		parsed, err := asaas.Parse(body)
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		e := parsed.(*asaas.PaymentEvent)
		message, _ := e.AdditionalInfo.Or(nil).Message()
		if e.SplitID() != tt.splitID || message != tt.message {
			t.Errorf("%s: got the split %q and the message %q, want %q and %q", tt.reason, e.SplitID(), message, tt.splitID, tt.message)
		}
		if asaas.Identify(body).Key != e.Payment.ID || e.Payment.ID == "" {
			t.Errorf("%s: it is about %q, want the charge %q", tt.reason, asaas.Identify(body).Key, e.Payment.ID)
		}
	}
	var absent asaas.AdditionalInfo
	if id, ok := absent.SplitID(); ok || id != "" {
		t.Errorf("nothing has the split %q", id)
	}
}

// Several come of one charge, one for each split.
func ExamplePaymentEvent_SplitID() {
	body := asaastest.Event("PAYMENT_SPLIT_DONE")
	parsed, err := asaas.Parse(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	e := parsed.(*asaas.PaymentEvent)
	for _, split := range e.Payment.AllSplits() {
		if split.ID.Or("") == e.SplitID() {
			fmt.Println(split.TotalValue.Or(asaas.Money{}), "of", e.Payment.ID, "is", split.Status.Or(""))
		}
	}
	// Output: 64.50 of pay_1_a1B2c3D4e5F6g7 is DONE
}
