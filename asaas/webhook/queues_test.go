package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// listOf is the answer of a list with one webhook.
func listOf(interrupted bool, penalized int) scriptedAnswer {
	return scriptedAnswer{status: 200, body: fmt.Sprintf(
		`{"hasMore":false,"data":[{"id":"a","name":"shop","url":"https://u:p@shop.example/hooks?key=1","enabled":true,"interrupted":%t,"penalizedRequestsCount":%d}]}`,
		interrupted, penalized)}
}

const day = 24 * time.Hour

func TestQueuesTellWhatIsHeldUpAndForHowLong(t *testing.T) {
	t.Parallel()
	sound, stopped, penalized := listOf(false, 0), listOf(true, 15), listOf(false, 3)
	for _, tt := range []struct {
		reason string
		looks  []scriptedAnswer // one a day
		want   time.Duration    // of the last look
	}{
		{"nothing is held up", []scriptedAnswer{sound}, 0},
		{"nobody has seen it sound", []scriptedAnswer{stopped, stopped}, 0},
		{"it was sound a day ago", []scriptedAnswer{sound, penalized}, 13 * day},
		{"the last time that it was sound counts", []scriptedAnswer{sound, stopped, sound, stopped, stopped}, 12 * day},
		{"the time is over", append([]scriptedAnswer{sound}, make([]scriptedAnswer, 15)...), time.Second},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := range tt.looks {
					if tt.looks[n].status == 0 {
						tt.looks[n] = stopped
					}
				}
				client, _ := clientOn(t, tt.looks...)
				queues := webhook.NewQueues(client, webhookToken, nil)
				var got []gauge.Queue
				for n := range tt.looks {
					if n > 0 {
						time.Sleep(day)
					}
					var err error
					if got, err = queues.Queues(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				last := tt.looks[len(tt.looks)-1]
				want := gauge.Queue{ID: "a", Name: "shop", URL: "https://shop.example/hooks", Enabled: true, DeletesIn: tt.want}
				switch last {
				case stopped:
					want.Interrupted, want.Penalized = true, 15
				case penalized:
					want.Penalized = 3
				}
				if diff := cmp.Diff([]gauge.Queue{want}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestQueuesThatAreNotToldAreAnError(t *testing.T) {
	t.Parallel()
	for reason, answer := range map[string]scriptedAnswer{
		"it does not tell whether it is stopped": {status: 200, body: `{"hasMore":false,"data":[{"id":"a","penalizedRequestsCount":0}]}`},
		"it does not tell what failed":           {status: 200, body: `{"hasMore":false,"data":[{"id":"a","interrupted":false}]}`},
		"the key is not taken":                   {status: 401, body: `{}`},
	} {
		client, _ := clientOn(t, answer)
		got, err := webhook.NewQueues(client, webhookToken, nil).Queues(t.Context())
		if err == nil || got != nil {
			t.Errorf("%s: got %v, %v", reason, got, err)
		}
	}
}

func TestAQueueIsReleasedOnceTheWayIsProved(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		outage time.Duration
		want   string
	}{
		{"it is slowed down", time.Hour, "the way is proved, handlers were not tried; the penalty is removed; recovered: Asaas counts no failures any more"},
		{"it is stopped", day, "the way is proved, handlers were not tried; the queue is resumed; recovered: Asaas counts no failures any more"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			o := newOutage(t, tt.outage)
			client := o.fake.Client() // its pauses pass in virtual time
			did, err := webhook.NewQueues(client, "", nil).Release(t.Context(), o.id)
			if did != "" || err == nil || !strings.Contains(err.Error(), "nothing was changed: the webhook's token is empty") || len(o.changes()) != 0 {
				t.Errorf("without a token it did %q, %v: %v", did, o.changes(), err)
			}
			o.broken.Store(false)
			queues := webhook.NewQueues(client, webhookToken, nil)
			if did, err = queues.Release(t.Context(), o.id); did != tt.want || err != nil {
				t.Errorf("Release = %q, %v, want %q", did, err, tt.want)
			}
			all, err := queues.Queues(t.Context())
			if err != nil || len(all) != 1 || all[0].Interrupted || all[0].Penalized != 0 {
				t.Errorf("afterwards it is %+v, %v", all, err)
			}
		})
	}
}

func TestADisabledWebhookIsEnabledAndThatIsRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, did, err string
		answer           scriptedAnswer
	}{
		{"it is enabled then", "the webhook was enabled: what happened before never comes", "", scriptedAnswer{status: 200, body: `{"id":"a","enabled":true}`}},
		{"it still is not", "", "Asaas says that a is still disabled", scriptedAnswer{status: 200, body: `{"id":"a","enabled":false}`}},
		{"it is not told", "", "Asaas says that a is still disabled", scriptedAnswer{status: 200, body: `{"id":"a"}`}},
		{"it was deleted", "", "404", scriptedAnswer{status: 404, body: `{}`}},
	} {
		client, _ := clientOn(t, tt.answer)
		did, err := webhook.NewQueues(client, webhookToken, nil).Enable(t.Context(), "a")
		if !strings.HasPrefix(did, tt.did) || (did == "") != (tt.did == "") || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: Enable = %q, %v", tt.reason, did, err)
		}
	}
}

func TestAReleaseThatFailsTellsWhatItDid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := clientOn(t, looked(false, 9), scriptedAnswer{status: 204}, looked(false, 12))
		did, err := webhook.NewQueues(client, webhookToken, nil).Release(t.Context(), "a")
		if did != "the way is proved, handlers were not tried; the penalty is removed" || err == nil || !strings.Contains(err.Error(), "there are new failures") {
			t.Errorf("Release = %q, %v", did, err)
		}
	})
}

// Whoever watches the queues sees how long there is left.
func ExampleQueues() {
	fake := asaastest.New()
	defer fake.Close()
	fake.AddWebhook(asaastest.Webhook{Name: "shop", Handler: http.NotFoundHandler()})
	queues := webhook.NewQueues(fake.Client(), webhookToken, nil)
	ctx := context.Background()
	_, _ = queues.Queues(ctx) // while all is well

	fake.Emit(asaastest.Event(asaas.EventPaymentReceived))
	fake.Advance(day)
	all, err := queues.Queues(ctx)
	for _, q := range all {
		fmt.Println(q.Name, q.Interrupted, q.Penalized, "failures")
		fmt.Println("less than 14 days left:", q.DeletesIn > 0 && q.DeletesIn < 14*day)
	}
	fmt.Println(err)
	// Output:
	// shop true 15 failures
	// less than 14 days left: true
	// <nil>
}

// brokenAPI fails as a network does.
type brokenAPI struct{ http.RoundTripper }

func (brokenAPI) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}
