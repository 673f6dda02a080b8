package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// rows are the lines of a table.
func rows(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestTheTableOfTheGuideIsWhatTheProgramPrints(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	var out strings.Builder
	if err := compare(t.Context(), pool, &out); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/from-the-guides.md")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(rows(string(guide)), "\n")
	for _, row := range rows(out.String()) {
		if !strings.Contains(said, row) {
			t.Errorf("docs/from-the-guides.md does not have:\n%s", row)
		}
	}
}

func TestBothModesSurviveEveryFault(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := compare(t.Context(), idemtest.Pool(t), &out); err != nil {
		t.Fatal(err)
	}
	all := rows(out.String())
	want := []string{"| idem.Processor | ok | ok | ok | ok |", "| idem.Inbox | ok | ok | ok | ok |"}
	if diff := cmp.Diff(want, all[len(all)-2:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := strings.Count(out.String(), "ok | ok | ok | ok"); n != 2 {
		t.Errorf("%d schemes survive: a fault that harms nothing tests nothing", n)
	}
}

const token = "a token of thirty-two characters"

// Of two events in a sequential queue, on Asaas's schedule, the first one always fails.
func TestAnEventThatAlwaysFailsDelaysTheNextCustomerAsTheGuideSays(t *testing.T) {
	t.Parallel()
	const poison = "pay_poison"
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(token)
	events.OnPaymentConfirmed(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		if e.Payment.ID == poison {
			return errors.New("it always fails")
		}
		return nil
	})
	byHand := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, err := events.Open(r); err != nil || e.Key == poison {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	processor, inbox := idem.NewProcessor(pool, events), idem.NewInbox(pool, events)
	processor.Logger, inbox.Logger = nil, nil
	for _, c := range []struct {
		name, id string
		receiver http.Handler
		want     []string
	}{
		{"by hand", "", byHand, []string{"stopped after 12h50m0s"}},
		{"a processor", "1", processor, []string{"the next is taken after 3h50m0s"}},
		{"an inbox", "2", inbox, []string{"the next is taken after 0s"}},
	} {
		fake := asaastest.New()
		defer fake.Close()
		fake.AddWebhook(asaastest.Webhook{Handler: c.receiver, Token: token, URL: "https://shop.example/webhooks/asaas"})
		begin, next := fake.Now(), "evt_next"+c.id
		fake.Emit(
			asaastest.Event("PAYMENT_CONFIRMED", asaastest.Set("payment.id", poison), asaastest.Set("id", "evt_poison"+c.id)),
			asaastest.Event("PAYMENT_CONFIRMED", asaastest.Set("payment.id", "pay_next"), asaastest.Set("id", next)),
		)
		fake.Advance(14 * 24 * time.Hour)
		var got []string
		for _, e := range fake.Timeline() {
			switch {
			case e.Kind == asaastest.Delivered && e.EventID == next:
				got = append(got, "the next is taken after "+e.At.Sub(begin).String())
			case e.Kind == asaastest.Paused:
				got = append(got, "stopped after "+e.At.Sub(begin).String())
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
