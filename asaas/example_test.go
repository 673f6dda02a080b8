package asaas_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/value"
)

func ExampleNewDispatcher() {
	events := asaas.NewDispatcher("the webhook's token") // os.Getenv("ASAAS_WEBHOOK_TOKEN")
	events.OnPayment(charges.Handler(func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		_, err := tx.Exec(ctx, `update orders set paid = paid + $1 where id = $2`, c.Paid(), c.After.ExternalReference)
		return err
	}))
	events.Ignore(asaas.EventPaymentCheckoutViewed, asaas.EventPaymentBankSlipViewed)
	// http.Handle("POST /webhooks/asaas", idem.NewInbox(pool, events))

	for _, eventType := range events.Types() {
		if strings.HasPrefix(string(eventType), "PAYMENT_CHARGEBACK") {
			fmt.Println("subscribe at Asaas to", eventType)
		}
	}
	// Output:
	// subscribe at Asaas to PAYMENT_CHARGEBACK_DISPUTE
	// subscribe at Asaas to PAYMENT_CHARGEBACK_REQUESTED
}

func ExampleDispatcher_accounts() {
	events := asaas.NewDispatcher()
	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) {
		switch name := r.PathValue("account"); name {
		case "shop", "school":
			return []idem.Credentials{{Scope: name, Secrets: []string{"token of the " + name}}}, nil
		}
		return nil, nil // nobody's URL: refused
	}

	// What idem.NewInbox does with each delivery:
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/asaas/{account}", func(_ http.ResponseWriter, r *http.Request) {
		e, err := events.Open(r)
		if refusal, ok := errors.AsType[*idem.Refusal](err); ok {
			fmt.Println("refused:", refusal.Reason)
			return
		}
		fmt.Println("event of scope:", e.Scope)
	})
	for _, account := range []string{"school", "shop", "nobody"} {
		r := httptest.NewRequest("POST", "/webhooks/asaas/"+account, strings.NewReader(`{"id":"evt_1","event":"PAYMENT_CREATED"}`))
		r.Header.Set(asaas.TokenHeader, "token of the shop")
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// refused: wrong_token
	// event of scope: shop
	// refused: unknown_account
}

func ExampleDispatcher_OnUnknown() {
	events := asaas.NewDispatcher("the webhook's token")
	events.OnUnknown(func(_ context.Context, _ pgx.Tx, e *asaas.UnknownEvent) error {
		fmt.Printf("%s is new: %s\n", e.Event, e.Raw)
		return nil
	})

	// What the workers of an idem.NewInbox do with each event, once, in a transaction:
	event := asaas.Identify([]byte(`{"id":"evt_1","event":"PAYMENT_ON_THE_MOON","moon":"full"}`))
	if err := events.Dispatch(context.Background(), nil, event); err != nil {
		fmt.Println(err)
	}
	// Output: PAYMENT_ON_THE_MOON is new: {"id":"evt_1","event":"PAYMENT_ON_THE_MOON","moon":"full"}
}

func ExampleVerify() {
	body := []byte(`{"id":"evt_1","event":"PAYMENT_RECEIVED","payment":{"id":"pay_1_a1B2c3D4e5F6g7"}}`)
	header := http.Header{}
	header.Set(asaas.TokenHeader, "the old token")

	// The new token and, until Asaas has it too, the old one.
	fmt.Println(asaas.Verify(header, body, "the new token", "the old token"))

	err := asaas.Verify(header, body, "the new token")
	if refusal, ok := errors.AsType[*idem.Refusal](err); ok {
		fmt.Println(refusal.Reason)
		fmt.Println(refusal.Hint)
	}
	// Output:
	// <nil>
	// wrong_token
	// the token is not the one configured: compare it with the webhook's at the provider
}

func ExampleParse() {
	for _, body := range []string{
		`{"id":"evt_1","event":"PAYMENT_RECEIVED","payment":{"id":"pay_1_a1B2c3D4e5F6g7","value":29.90,"externalReference":null}}`,
		`{"id":"evt_2","event":"PAYMENT_ON_THE_MOON","moon":"full"}`,
	} {
		event, err := asaas.Parse([]byte(body))
		if err != nil {
			fmt.Println(err)
			continue
		}
		switch e := event.(type) {
		case *asaas.PaymentEvent:
			fmt.Println(e.Event, e.Payment.ID, e.Payment.Value, "of", e.Payment.ExternalReference.Or("nobody we know"))
		case *asaas.UnknownEvent:
			fmt.Println("newer than this package:", e.Event)
		}
	}
	// Output:
	// PAYMENT_RECEIVED pay_1_a1B2c3D4e5F6g7 29.90 of nobody we know
	// newer than this package: PAYMENT_ON_THE_MOON
}

func ExampleIdentify() {
	body := []byte(`{"id":"evt_d26e&7","event":"PAYMENT_RECEIVED","dateCreated":"2026-08-08 20:45:13","payment":{"id":"pay_1_a1B2c3D4e5F6g7"}}`)
	e := asaas.Identify(body)
	fmt.Println(e.ID, e.Type, e.Key, e.OccurredAt.UTC())
	// Output: evt_d26e&7 PAYMENT_RECEIVED pay_1_a1B2c3D4e5F6g7 2026-08-08 23:45:13 +0000 UTC
}

func ExampleDecimal() {
	var payment struct {
		Value, NetValue asaas.Money
	}
	if err := json.Unmarshal([]byte(`{"value":29.9,"netValue":28.91}`), &payment); err != nil {
		fmt.Println(err)
	}
	fee := payment.Value.Sub(payment.NetValue)
	fmt.Println(fee, fee.Cents())
	fmt.Println(fee == asaas.Cents(99), payment.Value.Cmp(asaas.Cents(3000)))
	// Output:
	// 0.99 99
	// true -1
}

func ExamplePercent() {
	rate, err := value.ParseDecimal("1.99")
	if err != nil {
		fmt.Println(err)
	}
	fee := value.PercentOf(rate).Of(asaas.Cents(1999))
	fmt.Println(fee, fee.Round(2))
	// Output: 0.397801 0.40
}

func ExampleDate() {
	for _, d := range []asaas.Date{"2026-09-08", "08/09/2026", "2026-09-08T03:00:00+0000", "soon"} {
		day, err := d.Time()
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(day.Format(time.RFC3339))
	}
	// Output:
	// 2026-09-08T00:00:00-03:00
	// 2026-09-08T00:00:00-03:00
	// 2026-09-08T00:00:00-03:00
	// value: the text is not a date in a spelling that is known: keep it as text, string(d)
}

func ExampleDateTime() {
	for _, t := range []asaas.DateTime{"2026-08-08 20:45:13", "08/08/2026 20:45:13", "2026-08-08T23:45:13Z"} {
		at, err := t.Time()
		fmt.Println(at.Format(time.RFC3339), err)
	}
	// Output:
	// 2026-08-08T20:45:13-03:00 <nil>
	// 2026-08-08T20:45:13-03:00 <nil>
	// 2026-08-08T20:45:13-03:00 <nil>
}

// Fields that may be null or missing are optional.
func ExamplePayment() {
	p := asaas.Payment{
		ExternalReference: value.Null[string](),
		PaymentDate:       value.Of(asaas.Date("2026-08-08")),
	}
	if day, ok := p.PaymentDate.Get(); ok {
		fmt.Println("paid on", day)
	}
	fmt.Println("order:", p.ExternalReference.Or("none"), p.ExternalReference.IsNull())
	fmt.Println("the subscription was not sent:", p.Subscription.IsZero())
	// Output:
	// paid on 2026-08-08
	// order: none true
	// the subscription was not sent: true
}

// What Asaas sends and this package does not know changes nothing for your
// handlers, and is told.
func ExampleDispatcher_Drift() {
	events := asaas.NewDispatcher("the webhook's token")
	events.Watch.Observe = func(f drift.Finding) { fmt.Println("new:", f.EventType, f.Path, f.Kind) }
	events.OnPaymentReceived(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		fmt.Println("handled:", e.Payment.BillingType)
		return nil
	})
	body := asaastest.Event("PAYMENT_RECEIVED",
		asaastest.Set("payment.billingType", "DREX"),
		asaastest.Add("payment.taxes", []string{"ISS"}))
	for range 2 {
		if err := events.Dispatch(context.Background(), nil, asaas.Identify(body)); err != nil {
			fmt.Println(err)
		}
	}
	for _, f := range events.Drift() {
		fmt.Println(f.Count, f.EventType, f.Path, f.Kind)
	}
	// Output:
	// new: PAYMENT_RECEIVED payment.billingType unknown_value
	// new: PAYMENT_RECEIVED payment.taxes unknown_field
	// handled: DREX
	// handled: DREX
	// 2 PAYMENT_RECEIVED payment.billingType unknown_value
	// 2 PAYMENT_RECEIVED payment.taxes unknown_field
}

// An amount of null is not 0.00: the event is kept as failed, and its handler
// does not run.
func ExampleDispatcher_Dispatch_incomplete() {
	events := asaas.NewDispatcher("the webhook's token")
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		fmt.Println("handled")
		return nil
	})
	body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.value", nil))
	fmt.Println(events.Dispatch(context.Background(), nil, asaas.Identify(body)))
	// Output:
	// idem: a PAYMENT_RECEIVED is not complete: drift: payment.value is null, and the event is nothing without it: look for a newer version of this module
}

func ExampleWithdrawal() {
	var w asaas.Withdrawal
	if err := json.Unmarshal([]byte(`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":22,"bankAccount":{"pixAddressKey":"shop@example.com"}}}`), &w); err != nil {
		fmt.Println(err)
	}
	if transfer, ok := w.Transfer.Get(); ok {
		to, _ := transfer.BankAccount.Get()
		fmt.Println(w.Type, w.Value(), "to", to.PixAddressKey.Or("an account"))
	}
	// Output: TRANSFER 22.00 to shop@example.com
}
