package zeltapaytest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// The API lists what was paid, also once its event has left the dead-letter queue.
func ExampleFake_Client() {
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "the secret", Handler: shopDown})
	fake.Emit(zeltapaytest.Event("payment.success", zeltapaytest.Set("paymentLinkId", "pl_1")))
	fake.Advance(31 * 24 * time.Hour)
	fmt.Println(len(fake.DeadLetters()), "dead letters")
	for link, err := range fake.Client().Completed(context.Background()) {
		fmt.Println(link.ID, err)
	}
	// Output:
	// 0 dead letters
	// pl_1 <nil>
}

func TestTheAPIHasThePagesOfEachPaidLink(t *testing.T) {
	t.Parallel()
	fake := zeltapaytest.New()
	defer fake.Close()
	for n := range 203 {
		fake.Emit(zeltapaytest.Flat.Event("payment.success", zeltapaytest.Set("paymentLinkId", fmt.Sprintf("pl_%d", n/2)),
			zeltapaytest.Set("transaction.isTest", n == 4 || n == 5)))
		fake.Emit(zeltapaytest.Nested.Event("payment.success", zeltapaytest.Set("paymentLink.id", fmt.Sprintf("pl_%d", n/2))))
	}
	fake.Emit(zeltapaytest.Event("webhook.ping"), []byte(`not JSON`))
	seen := make(map[string]int)
	for link, err := range fake.Client().Completed(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		seen[link.ID]++
	}
	if len(seen) != 101 || seen["pl_2"] != 0 || seen["pl_0"] != 1 || seen["pl_101"] != 1 {
		t.Errorf("%d links: %v", len(seen), seen)
	}
}

func TestTheAPIRefusesWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	fake := zeltapaytest.New()
	defer fake.Close()
	for _, c := range []struct {
		method, path, key string
		want              int
	}{
		{"GET", "/v1/payment-links?status=completed", "", http.StatusUnauthorized},
		{"GET", "/v1/payment-links?status=pending", "k", http.StatusBadRequest},
		{"POST", "/v1/payment-links", "k", http.StatusNotFound},
		{"GET", "/v1/other", "k", http.StatusNotFound},
		{"GET", "/v1/payment-links?status=completed&off=7&lim=x", "k", http.StatusOK},
	} {
		r, w := httptest.NewRequest(c.method, c.path, nil), httptest.NewRecorder()
		if c.key != "" {
			r.Header.Set("X-API-Key", c.key)
		}
		if fake.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
}
