package asaastest_test

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestABodyHasWhatItsEventTypeSays(t *testing.T) {
	t.Parallel()
	for eventType, want := range map[asaas.EventType]struct {
		status asaas.PaymentStatus
		refund asaas.RefundStatus // "" where nothing is said about refunds
	}{
		asaas.EventPaymentReceived:          {asaas.PaymentStatusReceived, ""},
		asaas.EventPaymentRefunded:          {asaas.PaymentStatusRefunded, asaas.RefundStatusDone},
		asaas.EventPaymentPartiallyRefunded: {asaas.PaymentStatusReceived, asaas.RefundStatusDone},
		asaas.EventPaymentRefundInProgress:  {asaas.PaymentStatusRefundInProgress, asaas.RefundStatusPending},
		asaas.EventPaymentRefundDenied:      {asaas.PaymentStatusReceived, asaas.RefundStatusCancelled},
		asaas.EventPaymentSplitDone:         {asaas.PaymentStatusReceived, ""},
	} {
		p := payment(t, asaastest.Event(eventType)).Payment
		refunds := p.Refunds.Or(nil)
		if p.Status != want.status || len(refunds) != 1 || want.refund != "" && refunds[0].Status.Or("") != want.refund {
			t.Errorf("a %s is %s with %+v, want %+v", eventType, p.Status, refunds, want)
		}
		if part := refunds[0].Value.Or(p.Value); eventType == asaas.EventPaymentPartiallyRefunded && part.Cmp(p.Value) >= 0 {
			t.Errorf("the part of a %s is %s of %s", eventType, part, p.Value)
		}
	}
}

// Asaas's ids and addresses as they are since November 2026.
func TestIDsAndAddressesLookLikeAsaass(t *testing.T) {
	t.Parallel()
	e := payment(t, asaastest.Event(asaas.EventPaymentSplitDone))
	if !chargeID.MatchString(e.Payment.ID) || e.Payment.Chargeback.Or(asaas.Chargeback{}).Payment.Or("") != e.Payment.ID {
		t.Errorf("the charge is %s, and that of its chargeback another", e.Payment.ID)
	}
	for _, url := range []string{e.Payment.InvoiceURL, e.Payment.BankSlipURL.Or(""), e.Payment.TransactionReceiptURL.Or("")} {
		if !strings.HasPrefix(url, "https://www.asaas.com/000/") {
			t.Errorf("the address is %s", url)
		}
	}
	if splits := e.Payment.Split.Or(nil); len(splits) != 1 || splits[0].ID.Or("") != e.SplitID() || splits[0].Status.Or("") != asaas.SplitStatusDone {
		t.Errorf("the event is about the split %s, of %+v", e.SplitID(), splits)
	}
}

func payment(t *testing.T, body []byte) *asaas.PaymentEvent {
	t.Helper()
	e, err := asaas.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*asaas.PaymentEvent)
}
