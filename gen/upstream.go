package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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

// incomparable is why nothing could be compared.
type incomparable struct{ err error }

func (i incomparable) Error() string { return i.err.Error() }
func (i incomparable) Unwrap() error { return i.err }

// status is the exit status of the program.
func status(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(incomparable)):
		return 2
	}
	return 1
}

// upstream writes how Asaas's document differs from the spec.
func upstream(ctx context.Context, args []string, w io.Writer) error {
	return watch{fetcher: newFetcher(), counterparts: counterparts}.run(ctx, args, w)
}

// watch compares a spec with a document.
type watch struct {
	fetcher      fetcher
	counterparts map[string][]string
}

func (u watch) run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage text says it
	specPath := flags.String("spec", "spec/asaas.yaml", "")
	if flags.Parse(args) != nil || flags.NArg() != 1 {
		return incomparable{errors.New(usage)}
	}
	differences, err := u.compare(ctx, *specPath, flags.Arg(0))
	if err != nil {
		return incomparable{err}
	}
	for _, d := range differences {
		fmt.Fprintln(w, d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("gen: differences between %s and the document: %d. Follow it in the spec, "+
			"or mark what is delivered without being in it with %s", *specPath, len(differences), undocumentedExtension)
	}
	return nil
}

func (u watch) compare(ctx context.Context, specPath, source string) ([]string, error) {
	s, err := load(specPath)
	if err != nil {
		return nil, err
	}
	if err := s.lint(); err != nil {
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
	return s.compareTo(doc, u.counterparts)
}
