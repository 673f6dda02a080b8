package upstream

import (
	"context"
	"fmt"
	"io"

	"github.com/paghooks/paghooks/gen/spec"
)

// counterparts are Asaas's names of our schemas: what it answers when an object
// that events carry is asked for, and what our client sends. The objects inside are found through them.
// Blocks of balance, internal transfers and the eligibility for Pix Automático
// are in no answer, so there is nothing to compare them with.
var counterparts = map[string][]string{
	"AccessToken":               {"CustomerApiAccessTokenBaseResponseDTO"},
	"AccountStatus":             {"MyAccountGetStatusResponseDTO"},
	"Anticipation":              {"AnticipationGetResponseDTO"},
	"Bill":                      {"BillGetResponseDTO"},
	"Checkout":                  {"CheckoutSessionResponseDTO"},
	"Invoice":                   {"InvoiceGetResponseDTO"},
	"MobilePhoneRecharge":       {"MobilePhoneRechargeGetResponseDTO"},
	"Payment":                   {"PaymentGetResponseDTO"},
	"PixAutomaticAuthorization": {"PixReceiverAutomaticRecurringAuthorizationGetResponseDTO"},
	"PixAutomaticInstruction":   {"PixAutomaticRecurringPaymentInstructionGetResponseDTO"},
	"Subscription":              {"SubscriptionGetResponseDTO"},
	"Transfer":                  {"TransferGetResponseDTO", "TransferSaveInternalTransferResponseDTO"},
	"Webhook":                   {"WebhookConfigGetResponseDTO"},
	"WebhookCreate":             {"WebhookConfigSaveRequestDTO"},
	"WebhookUpdate":             {"WebhookConfigUpdateRequestDTO"},
}

// Report prints how Asaas's document differs from the spec, and returns in how
// many ways.
func Report(ctx context.Context, w io.Writer, s *spec.Spec, source string) (differences int, err error) {
	return watch{fetcher: newFetcher(), counterparts: counterparts}.report(ctx, w, s, source)
}

// watch compares a spec with a document.
type watch struct {
	fetcher      fetcher
	counterparts map[string][]string
}

func (u watch) report(ctx context.Context, w io.Writer, s *spec.Spec, source string) (int, error) {
	lines, err := u.compare(ctx, s, source)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	return len(lines), err
}

func (u watch) compare(ctx context.Context, s *spec.Spec, source string) ([]string, error) {
	if err := s.Lint(); err != nil {
		return nil, err
	}
	data, err := u.fetcher.read(ctx, source)
	if err != nil {
		return nil, err
	}
	doc, err := parseOfficial(data)
	if err != nil {
		return nil, fmt.Errorf("gen: %s: %w", source, err)
	}
	return compareTo(s, doc, u.counterparts)
}
