package webhook_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
)

var _ health.Part = (*webhook.Watches)(nil)

// oneAtATime counts the requests that are in flight.
type oneAtATime struct {
	http.RoundTripper
	now, most atomic.Int64
	calls     atomic.Int64
}

func (o *oneAtATime) RoundTrip(r *http.Request) (*http.Response, error) {
	o.calls.Add(1)
	n := o.now.Add(1)
	defer o.now.Add(-1)
	for most := o.most.Load(); n > most && !o.most.CompareAndSwap(most, n); most = o.most.Load() {
	}
	return o.RoundTripper.RoundTrip(r)
}

func TestWatchesSayWhatKeepsEventsAwayByAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		defer fake.Close()
		events := asaas.NewDispatcher("token")
		events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
		want := func(account string) webhook.Settings {
			return webhook.Settings{Name: account, URL: "https://shop.example/webhooks/asaas/" + account}
		}
		ids, keys := map[string]string{}, map[string]string{}
		var order []string
		var mu sync.Mutex // guards order and keys
		join := func(name, key string) {
			mu.Lock()
			defer mu.Unlock()
			keys[name], order = key, append(order, name)
		}
		add := func(name string) {
			a := fake.AddAccount(name)
			ids[name] = fake.AddWebhook(asaastest.Webhook{Account: a.ID, Name: name, URL: want(name).URL, Token: "t"})
			join(name, a.APIKey)
		}
		for n := range 8 {
			add(fmt.Sprintf("seller-%d", n+1))
		}
		way := &oneAtATime{RoundTripper: fake.Transport()}
		list := func(yield func(string, string) bool) {
			mu.Lock()
			names, keys := slices.Clone(order), maps.Clone(keys)
			mu.Unlock()
			for _, name := range names {
				if !yield(name, keys[name]) {
					return
				}
			}
		}
		w := webhook.NewWatches(func(yield func(string, *asaas.Client) bool) {
			for account, client := range asaas.Clients(asaas.Sandbox, list) {
				client.Transport = way
				if !yield(account, client) {
					return
				}
			}
		}, want, events)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()

		is := func() check.Result { return w.Examine(ctx, check.Limits{})[0] }
		says := func(healthy bool, wants ...string) {
			t.Helper()
			synctest.Wait()
			r := is()
			if r.Healthy != healthy {
				t.Errorf("healthy is %t: %s", r.Healthy, r.Says)
			}
			for _, want := range wants {
				if !strings.Contains(r.Says, want) {
					t.Errorf("it says %q, want %q", r.Says, want)
				}
			}
		}
		round := func() { time.Sleep(5*time.Minute + time.Second) } // of the bubble

		says(true, "the webhooks of 8 accounts are enabled")
		if way.calls.Load() != 8 || way.most.Load() != 1 {
			t.Errorf("%d calls, %d at once; want one for each account, one after the other", way.calls.Load(), way.most.Load())
		}

		// A key that Asaas does not take any more, and one that is none: for an hour they may be a fault of Asaas's.
		mu.Lock()
		key := keys["seller-2"]
		keys["seller-2"], keys["seller-3"] = "$aact_hmlg_gone", "a key in words"
		mu.Unlock()
		if err := fake.ClientOf(keys["seller-4"]).DeleteWebhook(ctx, ids["seller-4"]); err != nil {
			t.Fatal(err)
		}
		round()
		says(false, "of 8 accounts 1: seller-4: ", ": asaas-queue apply -name ", " -account 'seller-4' -sandbox", "ASAAS_ACCOUNTS names the list")
		time.Sleep(time.Hour)
		round()
		says(false, "of 8 accounts 3: ", "seller-2: the webhook could not be looked at", "seller-3: ", "the API key has a space", "seller-4: ")
		if text := is().Says; strings.Contains(text, "a key in words") || strings.Contains(text, "$aact_hmlg_gone") {
			t.Error("a key is shown: " + text)
		}

		// What is repaired is sound; an account that joins is watched, one that leaves is not.
		mu.Lock()
		keys["seller-2"] = key
		order = order[:2]
		mu.Unlock()
		add("seller-9")
		round()
		says(true, "of 3 accounts")
		problems, _, err := w.Problems(ctx)
		if len(problems) != 0 || err != nil {
			t.Error(problems, err)
		}

		// Many are named by five.
		for _, name := range order {
			if err := fake.ClientOf(keys[name]).DeleteWebhook(ctx, ids[name]); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 4 {
			name := fmt.Sprintf("new-%d", n)
			join(name, fake.AddAccount(name).APIKey)
		}
		round()
		says(false, "of 7 accounts 7: seller-1: ", "; and 2 more")
		if problems, _, err := w.Problems(ctx); len(problems) != 7 || err != nil || !strings.HasPrefix(problems[6], "new-3: ") || !strings.Contains(problems[6], " -account 'new-3'") {
			t.Error(problems, err)
		}
		stop()
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
	})
}
