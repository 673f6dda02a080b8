package asaas_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestRecoverSaysWhatTheWebhookDoesNotBring(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(webhookToken)
	handleTwo(events)
	const order = "events are sent NON_SEQUENTIALLY, not SEQUENTIALLY: an older event of a charge may be handled after a newer one"
	both := []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}
	for _, c := range []struct {
		reason  string
		webhook asaastest.Webhook
		store   asaas.EventStore
		want    []string
	}{
		{"all is well", asaastest.Webhook{Events: both}, idem.NewProcessor(pool, events), nil},
		{"a type that is handled", asaastest.Webhook{Events: both[:1]}, idem.NewInbox(pool, events), []string{"PAYMENT_REFUNDED is handled and not subscribed to: it never comes"}},
		{"the order, inline", asaastest.Webhook{Events: both, SendType: asaastest.NonSequentially}, idem.NewProcessor(pool, events), []string{order}},
		{
			"an order that a terminal would obey",
			asaastest.Webhook{Events: both, SendType: "\x1b[2J"},
			idem.NewProcessor(pool, events),
			[]string{strings.Replace(order, "NON_SEQUENTIALLY", "\uFFFD[2J", 1)},
		},
		{"the order, in an inbox", asaastest.Webhook{Events: both, SendType: asaastest.NonSequentially}, idem.NewInbox(pool, events), nil},
	} {
		fake := asaastest.New()
		t.Cleanup(fake.Close)
		c.webhook.URL, c.webhook.Token = shopURL, webhookToken
		id := fake.AddWebhook(c.webhook)
		var got []string
		for p, err := range asaas.Recover(t.Context(), fake.Client(), id, passes, c.store) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Step == asaas.RecoveryMisses {
				got = p.Misses
				if says := p.String(); !strings.Contains(says, "asaas-queue plan") || !strings.Contains(says, got[0]) {
					t.Errorf("%s: it says %s", c.reason, says)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}
