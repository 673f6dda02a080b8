package zeltapaytest_test

import (
	"testing"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestAWebhookGetsTheEventsItSubscribesTo(t *testing.T) {
	t.Parallel()
	all, pings, none := answering(200), answering(200), answering(200)
	fake := fakeFor(t, all)
	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: pings, Events: []zeltapay.EventType{"webhook.ping"}})
	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: none, Events: []zeltapay.EventType{}})
	fake.Emit(
		named("evt_1"),
		zeltapaytest.Event("webhook.ping", zeltapaytest.Set("eventId", "evt_2")),
		zeltapaytest.Event("webhook.ping", zeltapaytest.Set("eventId", "evt_3"), zeltapaytest.Set("type", "newer")),
	)
	fake.Settle()
	same(t, "of all", []string{"evt_1", "evt_2", "evt_3"}, all.ids())
	same(t, "of the pings", []string{"evt_2"}, pings.ids())
	same(t, "of none", []string(nil), none.ids())
}

func TestWebhooksHaveRetriesAndSecretsOfTheirOwn(t *testing.T) {
	t.Parallel()
	up, down := answering(200), answering(503, 503, 204)
	fake := fakeFor(t, up)
	fake.AddWebhook(zeltapaytest.Webhook{URL: "http://other.example/hooks", Secret: "other", Handler: down})
	fake.Emit(named("evt_1"))
	fake.Advance(day)
	same(t, "of the first", []string{"evt_1"}, up.ids())
	same(t, "of the second", []string{"evt_1", "evt_1", "evt_1"}, down.ids())
	other := zeltapay.Verifier{Secrets: []string{"other"}, Now: fake.Now, Tolerance: 2 * day}
	if err := other.Verify(down.got[0].header, []byte(down.got[0].body)); err != nil {
		t.Error(err)
	}
	if other.Verify(up.got[0].header, []byte(up.got[0].body)) == nil {
		t.Error("the first webhook's event is signed with the second's secret")
	}
	var urls []string
	for _, e := range fake.Timeline() {
		if e.Kind == zeltapaytest.Delivered {
			urls = append(urls, e.URL)
		}
	}
	same(t, "the URLs", []string{"http://receiver.example/webhooks/zeltapay", "http://other.example/hooks"}, urls)
}

func TestTheFakeKeepsACopyOfABody(t *testing.T) {
	t.Parallel()
	re := answering(200)
	fake := fakeFor(t, re)
	body := named("evt_1")
	want := string(body)
	fake.Emit(body)
	clear(body)
	fake.Settle()
	same(t, "the body", want, re.got[0].body)
}

func TestABodyWithoutAnIDKeepsTheOneOfItsHeader(t *testing.T) {
	t.Parallel()
	re := answering(503, 200)
	fake := fakeFor(t, re)
	body := zeltapaytest.Nested.Event("payment.success", zeltapaytest.Delete("eventId"))
	fake.Emit(body, body)
	fake.Advance(day)
	ids := re.ids()
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[2] || ids[1] == ids[0] {
		t.Errorf("two events have the ids %q", ids)
	}
}
