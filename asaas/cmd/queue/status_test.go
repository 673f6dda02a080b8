package queue

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestStatusShowsEveryQueue(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.webhooks()
	status, out, complaints := a.queue(t, "status")
	golden(t, "status.txt", out)
	if status != 4 || complaints != "" {
		t.Errorf("exit status %d, %q", status, complaints)
	}
	status, out, complaints = a.queue(t, "-json", "status")
	golden(t, "status.json", out)
	if status != 4 || complaints != "" {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}

func TestStatusOfAnAccountWhereAllIsWell(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if status, out, _ := a.queue(t, "status"); status != 0 || out != "The account has no webhooks.\n" {
		t.Errorf("without webhooks: exit status %d, prints %q", status, out)
	}
	if status, out, _ := a.queue(t, "status", "-json"); status != 0 || out != `{"webhooks":[],"owed":null}`+"\n" {
		t.Errorf("without webhooks: exit status %d, prints %q", status, out)
	}
	_, _, penalized, stopped := a.webhooks()
	a.fake.RemoveBackoff(penalized)
	a.fake.Resume(stopped)
	if status, out, _ := a.queue(t, "status"); status != 4 || strings.Contains(out, "stopped,") || strings.Count(out, "  ok  ") != 3 {
		t.Errorf("with a webhook that is disabled: exit status %d, prints %s", status, out)
	}
	well := newAccount(t)
	well.fake.AddWebhook(asaastest.Webhook{URL: "https://shop.example/webhooks/asaas", Token: token})
	if status, out, _ := well.queue(t, "status"); status != 0 || strings.Count(out, "  ok  ") != 1 {
		t.Errorf("exit status %d, prints %s", status, out)
	}
}

func TestStatusTellsTheTimeLeft(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.webhooks()
	const day = 24 * time.Hour
	for _, test := range []struct {
		ago         time.Duration
		says        string
		seconds     int64 // at most
		atLeastSecs int64
	}{
		{0, "13d 23h", 14 * 86400, 14*86400 - 600},
		{4*day + 30*time.Minute, "9d 23h", 10*86400 - 1800, 10*86400 - 1800 - 600},
		{20 * day, "none, events may be deleted", 0, 0},
	} {
		last := time.Now().Add(-test.ago).Format(time.RFC3339)
		if _, out, _ := a.queue(t, "status", "-last-event", last); strings.Count(out, test.says) != 2 {
			t.Errorf("%s ago: prints %s", test.ago, out)
		}
		var got overview
		_, out, _ := a.queue(t, "status", "-json", "-last-event", last)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Webhooks {
			if r.State.isHeldUp() != (r.SecondsLeft != nil) {
				t.Errorf("%s ago: %s is %s, with the time left %v", test.ago, r.Name, r.State, r.SecondsLeft)
			}
			if s := r.SecondsLeft; s != nil && (*s > test.seconds || *s < test.atLeastSecs) {
				t.Errorf("%s ago: %d s are left", test.ago, *s)
			}
		}
	}
	if status, _, complaints := a.queue(t, "status", "-last-event", "yesterday"); status != 2 || !strings.Contains(complaints, "no time such as 2026-11-20T10:00:00Z") {
		t.Errorf("exit status %d, %s", status, complaints)
	}
}

func TestTheStateOfAQueueIsNotGuessed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]row{
		`{"interrupted":true,"penalizedRequestsCount":15,"enabled":false}`:  {State: stopped, Penalized: 15},
		`{"interrupted":false,"penalizedRequestsCount":2,"enabled":false}`:  {State: penalizedState, Penalized: 2},
		`{"interrupted":false,"penalizedRequestsCount":0,"enabled":false}`:  {State: disabled},
		`{"interrupted":true,"penalizedRequestsCount":null,"enabled":true}`: {State: stopped, Enabled: true},
		`{"penalizedRequestsCount":0,"enabled":true}`:                       {State: unknown, Enabled: true},
		`{"interrupted":false,"enabled":true}`:                              {State: unknown, Enabled: true},
	} {
		var w asaas.Webhook
		if err := json.Unmarshal([]byte(body), &w); err != nil {
			t.Fatal(err)
		}
		got := newRow(&w, time.Time{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if words := string(got.State) + ", disabled"; got.State.isHeldUp() && !got.Enabled && new(program).words(got) != words {
			t.Errorf("%s: says %q, want %q", body, new(program).words(got), words)
		}
	}
}

// A receiver behind basic authentication, or with a key in its address.
func TestNoSecretOfAnAddressIsPrinted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	failing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	id := a.fake.AddWebhook(asaastest.Webhook{Handler: failing, URL: "https://asaas:hunter2@shop.example/webhooks/asaas?key=hunter2#hunter2", Token: token})
	a.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	a.fake.Settle()
	no := "n\n"
	for _, args := range [][]string{{"status"}, {"status", "-json"}, {"remove-penalty", id}} {
		_, out, complaints := a.queueAnswering(t, &no, args...)
		if said := out + complaints; strings.Contains(said, "hunter2") || !strings.Contains(said, "https://shop.example/webhooks/asaas") {
			t.Errorf("%v prints %s", args, said)
		}
	}
}
