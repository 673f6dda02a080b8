package guides

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
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

func TestTheTableOfTheGuideIsWhatTheSchemesDoAndBothModesSurviveEveryFault(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/from-the-guides.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := table(t)
	for _, row := range rows {
		t.Log(row)
		if !strings.Contains(string(guide), "\n"+row+"\n") {
			t.Errorf("docs/from-the-guides.md does not have:\n%s", row)
		}
	}
	want := []string{"| WorkFirst | ok | ok | ok | ok |", "| idem.Inbox | ok | ok | ok | ok |"}
	if diff := cmp.Diff(want, slices.DeleteFunc(rows, func(row string) bool { return !strings.HasSuffix(row, "| ok | ok | ok | ok |") })); diff != "" {
		t.Errorf("these schemes survive, and a fault that harms nothing tests nothing (-want +got):\n%s", diff)
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
	first, inbox := idem.NewInbox(pool, events), idem.NewInbox(pool, events)
	first.WorkFirst = true
	first.Logger, inbox.Logger = nil, nil
	for _, c := range []struct {
		name, id string
		receiver http.Handler
		want     []string
	}{
		{"by hand", "", byHand, []string{"stopped after 12h50m0s"}},
		{"work first without workers", "1", first, []string{"stopped after 12h50m0s"}},
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
