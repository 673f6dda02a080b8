package asaastest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// A receiver is deployed with a mistake. Asaas pauses its queue after 15
// failures, and everything comes once the queue is reactivated.
func Example_outage() {
	broken := true
	receiver := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // stands for idem.NewInbox(pool, events)
		if broken {
			http.Error(w, "a mistake", http.StatusInternalServerError)
		}
	})
	fake := asaastest.New()
	defer fake.Close()
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: receiver})

	began := fake.Now()
	fake.Observe = func(e asaastest.Entry) {
		switch e.Kind {
		case asaastest.Emailed, asaastest.Paused, asaastest.Resumed, asaastest.Delivered:
			fmt.Println(e.At.Sub(began), e.Kind)
		}
	}
	fake.Emit(
		asaastest.Event("PAYMENT_CREATED", asaastest.Set("id", "evt_1")),
		asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_2")))
	fake.Advance(24 * time.Hour)
	broken = false // a new version is deployed
	fake.Resume(webhook)
	fake.Settle()
	// Output:
	// 10m0s emailed
	// 3h50m0s emailed
	// 12h50m0s emailed
	// 12h50m0s paused
	// 24h0m0s resumed
	// 24h0m0s delivered
	// 24h0m0s delivered
}

func ExampleNew() {
	fake := asaastest.New()
	defer fake.Close()
	fake.AddWebhook(asaastest.Webhook{
		Token: "the token",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			err := asaas.Verify(r.Header, body, "the token")
			fmt.Println(asaas.Identify(body).Type, err)
		}),
	})
	fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	fake.Settle()
	// Output: PAYMENT_RECEIVED <nil>
}

// The API is at the URL, and events are delivered to a server.
func ExampleNewServer() {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path, r.Header.Get("Asaas-Access-Token"))
	}))
	defer receiver.Close()
	fake := asaastest.NewServer()
	defer fake.Close()
	create := fmt.Sprintf(`{"name": "orders", "url": "%s/webhooks/asaas", "email": "ops@example.com",
		"sendType": "SEQUENTIALLY", "authToken": "a-token-that-is-long-enough-for-asaas", "events": ["PAYMENT_RECEIVED"]}`, receiver.URL)
	r, err := http.NewRequest(http.MethodPost, fake.URL+"/v3/webhooks", strings.NewReader(create))
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("access_token", fake.APIKey)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)

	fake.Emit(asaastest.Event("PAYMENT_RECEIVED"), asaastest.Event("PAYMENT_OVERDUE"))
	fake.Settle()
	// Output:
	// 200 OK
	// POST /webhooks/asaas a-token-that-is-long-enough-for-asaas
}

// Nothing in the client shows that it talks to a fake.
func ExampleFake_Transport() {
	fake := asaastest.New()
	defer fake.Close()
	webhook := fake.AddWebhook(asaastest.Webhook{URL: "https://shop.example/webhooks/asaas", Interrupted: true})

	client, err := asaas.NewClient(asaas.Sandbox, fake.APIKey)
	if err != nil {
		fmt.Println(err)
		return
	}
	client.Transport = fake.Transport()
	w, err := client.Webhook(context.Background(), webhook)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.ID == webhook)
	// Output: true
}

func ExampleFake_Advance() {
	fake := asaastest.New()
	defer fake.Close()
	fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})})
	fake.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_1")))
	fake.Advance(2 * time.Minute)
	for _, e := range fake.Timeline() {
		fmt.Println(e)
	}
	// Output:
	// 2026-08-08 23:45:13 queued PAYMENT_RECEIVED evt_1
	// 2026-08-08 23:45:13 failed PAYMENT_RECEIVED evt_1, attempt 1: 503, next in 30s
	// 2026-08-08 23:45:43 failed PAYMENT_RECEIVED evt_1, attempt 2: 503, next in 1m0s
	// 2026-08-08 23:46:43 failed PAYMENT_RECEIVED evt_1, attempt 3: 503, next in 3m30s
}

// The answer to the first attempt is lost: the receiver gets the event twice.
func ExampleFake_Inject() {
	fake := asaastest.New()
	defer fake.Close()
	fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println("received", asaas.Identify(body).ID)
	})})
	fake.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_1")))
	fake.Inject(asaastest.LostAnswer)
	fake.Advance(time.Minute)
	for _, e := range fake.Timeline() {
		fmt.Println(e)
	}
	// Output:
	// received evt_1
	// received evt_1
	// 2026-08-08 23:45:13 queued PAYMENT_RECEIVED evt_1
	// 2026-08-08 23:45:13 failed PAYMENT_RECEIVED evt_1, attempt 1: 200, the answer was lost, next in 30s
	// 2026-08-08 23:45:43 delivered PAYMENT_RECEIVED evt_1, attempt 2: 200
}

func ExampleFake_InjectAPI() {
	fake := asaastest.NewServer()
	defer fake.Close()
	fake.InjectAPI(asaastest.APIPage(http.StatusBadGateway), asaastest.APIForbidden)
	for range 3 {
		r, err := http.NewRequest(http.MethodGet, fake.URL+"/v3/webhooks", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set("access_token", fake.APIKey)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(answer.Status, answer.Header.Get("Content-Type"))
		answer.Body.Close()
	}
	// Output:
	// 502 Bad Gateway text/html; charset=utf-8
	// 403 Forbidden application/json
	// 200 OK application/json
}

func ExampleFake_RemoveBackoff() {
	status := http.StatusServiceUnavailable
	fake := asaastest.New()
	defer fake.Close()
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
	})})
	fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	fake.Advance(time.Hour)
	fmt.Println(fake.Webhook(webhook).Penalized, "failures in a row")

	status = http.StatusOK
	fake.RemoveBackoff(webhook)
	fake.Settle()
	fmt.Println(fake.Webhook(webhook).Penalized, "failures in a row,", fake.Webhook(webhook).Pending, "pending")
	// Output:
	// 7 failures in a row
	// 0 failures in a row, 0 pending
}

// Two events in flight: the first fails, the second does not wait for it.
func ExampleWebhook() {
	fake := asaastest.New()
	defer fake.Close()
	webhook := fake.AddWebhook(asaastest.Webhook{
		SendType: asaastest.NonSequentially,
		Events:   []asaas.EventType{"PAYMENT_RECEIVED", "PAYMENT_OVERDUE"},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if asaas.Identify(body).Type == "PAYMENT_OVERDUE" {
				http.Error(w, "no handler", http.StatusNotFound)
			}
		}),
	})
	fake.Emit(asaastest.Event("PAYMENT_OVERDUE"), asaastest.Event("PAYMENT_RECEIVED"), asaastest.Event("TRANSFER_DONE"))
	fake.Settle()
	for _, e := range fake.Timeline() {
		fmt.Println(e.Kind, e.EventType)
	}
	fmt.Println(fake.Webhook(webhook).Pending, "pending")
	// Output:
	// queued PAYMENT_OVERDUE
	// queued PAYMENT_RECEIVED
	// failed PAYMENT_OVERDUE
	// delivered PAYMENT_RECEIVED
	// 1 pending
}

// A fault of your own: the API works, and its answer says something new.
func ExampleAPIFault() {
	fake := asaastest.New()
	defer fake.Close()
	fake.InjectAPI(func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		w.Header().Set("Deprecation", "true")
		api.ServeHTTP(w, r)
	})
	r := httptest.NewRequest(http.MethodGet, "/v3/webhooks", nil)
	r.Header.Set("access_token", fake.APIKey)
	r.Header.Set("User-Agent", "an example")
	w := httptest.NewRecorder()
	fake.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Deprecation"), w.Body)
	// Output: 200 true {"object":"list","hasMore":false,"totalCount":0,"limit":10,"offset":0,"data":[]}
}
