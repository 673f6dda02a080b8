package zeltapaytest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// shopDown answers like a shop without its database.
var shopDown = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
})

func printTimeline(fake *zeltapaytest.Fake) {
	for _, e := range fake.Timeline() {
		fmt.Println(e)
	}
}

// A receiver that verifies on the fake's clock. An idem.Inbox is one too: set its dispatcher's Now.
func ExampleNew() {
	fake := zeltapaytest.New()
	defer fake.Close()
	events := zeltapay.NewDispatcher("the secret")
	events.Now = fake.Now
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "the secret", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(zeltapay.Identify(body).ID, "refused:", events.Verify(r.Header, body))
	})})

	fake.Advance(3 * 24 * time.Hour)
	fake.Emit(zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", "evt_1")))
	fake.Settle()
	// Output: evt_1 refused: <nil>
}

func ExampleFake_Advance() {
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.Start = time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC)
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "the secret", Handler: shopDown})
	fake.Emit(zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", "evt_1")))

	fake.Advance(time.Hour)
	printTimeline(fake)
	// Output:
	// 2026-08-08 23:45:13 queued payment.success evt_1
	// 2026-08-08 23:45:13 failed payment.success evt_1, attempt 1: 503, next in 5s
	// 2026-08-08 23:45:18 failed payment.success evt_1, attempt 2: 503, next in 10s
	// 2026-08-08 23:45:28 failed payment.success evt_1, attempt 3: 503, next in 20s
	// 2026-08-08 23:45:48 failed payment.success evt_1, attempt 4: 503, next in 40s
	// 2026-08-08 23:46:28 failed payment.success evt_1, attempt 5: 503, next in 1m20s
	// 2026-08-08 23:47:48 failed payment.success evt_1, attempt 6: 503, next in 2m40s
	// 2026-08-08 23:50:28 failed payment.success evt_1, attempt 7: 503
	// 2026-08-08 23:50:28 dead-lettered payment.success evt_1, attempt 7: all retries failed
}

// A 4xx for a fault that will pass is a mistake that needs a person: the event is not retried.
func ExampleFake_DeadLetters() {
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "the secret", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict) // another worker has it
	})})
	fake.Emit(zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", "evt_1")))
	fake.Advance(24 * time.Hour)
	for _, letter := range fake.DeadLetters() {
		fmt.Println(letter.EventID, letter.Attempts, letter.Reason, letter.Until.Sub(letter.Since))
	}
	fake.Advance(29 * 24 * time.Hour)
	fmt.Println(len(fake.DeadLetters()))
	// Output:
	// evt_1 1 the answer is not retried 720h0m0s
	// 0
}

func ExampleFake_Replay() {
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.Start = time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC)
	status := http.StatusUnauthorized // the secret is wrong
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "the secret", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
	})})
	fake.Emit(zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", "evt_1")))
	fake.Advance(3 * 24 * time.Hour)

	status = http.StatusOK // and was put right
	fmt.Println(fake.Replay("evt_1"), fake.Replay("evt_2"))
	fake.Settle()
	printTimeline(fake)
	// Output:
	// true false
	// 2026-08-08 23:45:13 queued payment.success evt_1
	// 2026-08-08 23:45:13 failed payment.success evt_1, attempt 1: 401
	// 2026-08-08 23:45:13 dead-lettered payment.success evt_1, attempt 1: the answer is not retried
	// 2026-08-11 23:45:13 replayed payment.success evt_1, attempt 1
	// 2026-08-11 23:45:13 delivered payment.success evt_1, attempt 2: 200
}

func ExampleFake_ReplayAll() {
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "the secret", Handler: shopDown})
	fake.Emit(zeltapaytest.Event("payment.success"), zeltapaytest.Nested.Event("payment.success"))
	fake.Advance(time.Hour)
	fmt.Println(len(fake.DeadLetters()), "wait,", fake.ReplayAll(), "are due,", len(fake.DeadLetters()), "wait")
	fake.Settle()
	fmt.Println(len(fake.DeadLetters()), "wait:", fake.DeadLetters()[0].Reason)
	// Output:
	// 2 wait, 2 are due, 0 wait
	// 2 wait: the replay failed
}

func ExampleFake_Inject() {
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.Start = time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC)
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "the secret", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("received", r.Header.Get("Zeltapay-Event-Id"))
	})})
	fake.Emit(zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", "evt_1")))
	fake.Inject(zeltapaytest.LostAnswer)
	fake.Advance(time.Minute)
	printTimeline(fake)
	// Output:
	// received evt_1
	// received evt_1
	// 2026-08-08 23:45:13 queued payment.success evt_1
	// 2026-08-08 23:45:13 failed payment.success evt_1, attempt 1: 200, the answer was lost, next in 5s
	// 2026-08-08 23:45:18 delivered payment.success evt_1, attempt 2: 200
}

// The requests that a receiver has to expect: here one that verifies.
func ExampleFault() {
	for name, fault := range map[string]zeltapaytest.Fault{
		"duplicate":    zeltapaytest.Duplicate,
		"concurrent":   zeltapaytest.Concurrent,
		"cut body":     zeltapaytest.CutBody,
		"slow body":    zeltapaytest.SlowBody,
		"wrong secret": zeltapaytest.WrongSecret,
		"stale":        zeltapaytest.Stale,
	} {
		fake := zeltapaytest.New()
		fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: verifying(fake.Now)})
		fake.Inject(fault)
		fake.Emit(zeltapaytest.Event("payment.success"))
		fake.Settle()
		fmt.Printf("%s:", name)
		for _, e := range fake.Timeline()[1:] {
			fmt.Printf(" %s %d;", e.Kind, e.Status)
		}
		fmt.Println()
		fake.Close()
	}
	// Unordered output:
	// duplicate: delivered 200; copied 200;
	// concurrent: delivered 200; copied 200;
	// cut body: failed 0;
	// slow body: delivered 200;
	// wrong secret: failed 401; dead-lettered 0;
	// stale: failed 401; dead-lettered 0;
}

// A receiver behind a URL, with a clock of its own.
func ExampleFake_AddWebhook() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := zeltapay.Verify(r.Header, body, "the secret"); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"received":true}`)
	}))
	defer server.Close()

	fake := zeltapaytest.New()
	defer fake.Close()
	fake.SigningTime = time.Now
	fake.AddWebhook(zeltapaytest.Webhook{URL: server.URL + "/webhooks/zeltapay", Secret: "the secret"})
	fake.Advance(3 * 24 * time.Hour)
	fake.Emit(zeltapaytest.Event("webhook.ping"))
	fake.Settle()
	e := fake.Timeline()[1]
	fmt.Println(e.Kind, e.Status, e.Answer)
	// Output: delivered 200 {"received":true}
}
