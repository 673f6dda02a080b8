package asaastest_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

// A bubble fails its test when a goroutine is left at its end.
func TestFakeWorksInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		defer fake.Close()
		var takes atomic.Int64
		takes.Store(int64(11 * time.Second))
		webhook := fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Duration(takes.Load()))
		})})
		began := time.Now()
		fake.Emit(paid("evt_1"))
		fake.Settle()
		if failed := of(fake, asaastest.Failed); len(failed) != 1 || failed[0].Error != "no answer within 10s" {
			t.Errorf("it happened:\n%s", lines(fake.Timeline()))
		}
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("Asaas waited for %s", got)
		}
		takes.Store(int64(9 * time.Second))
		r := newRequest(t, fake, http.MethodPost, "/v3/webhooks/"+webhook+"/removeBackoff", "{}")
		answer, err := clientOf(fake).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		fake.Settle()
		if answer.StatusCode != http.StatusNoContent || fake.Webhook(webhook).Pending != 0 {
			t.Errorf("removeBackoff: %s, %+v", answer.Status, fake.Webhook(webhook))
		}
	})
}

// The fake is not closed: nothing may be left all the same.
func TestNothingRunsBetweenDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK)})
		fake.Emit(paid("evt_1"))
		fake.Settle()
		call(t, fake, http.MethodGet, "/v3/webhooks", "")
	})
}

func TestCloseEndsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		delivering, ended := make(chan bool), false
		fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(delivering)
			<-r.Context().Done()
			time.Sleep(time.Second) // its work at the end
			ended = true
		})})
		fake.Emit(paid("evt_1"), paid("evt_2"))
		settled := make(chan bool)
		go func() {
			fake.Settle()
			close(settled)
		}()
		<-delivering
		began := time.Now()
		fake.Close()
		if !ended || time.Since(began) != time.Second {
			t.Errorf("after %s the receiver has ended: %t", time.Since(began), ended)
		}
		<-settled
		if n := len(of(fake, asaastest.Delivered)); n != 0 {
			t.Errorf("%d delivered", n)
		}
	})
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		leave := make(chan bool)
		defer close(leave)
		fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-leave })})
		fake.Emit(paid("evt_1"))
		fake.Settle()
		began := time.Now()
		fake.Close()
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("Close waited for %s", got)
		}
	})
}

func TestClosedServerListensNoMore(t *testing.T) {
	t.Parallel()
	fake := asaastest.NewServer()
	asked := make(chan error, 1)
	arrived := make(chan bool)
	fake.InjectAPI(func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		close(arrived)
		asaastest.APISilence(w, r, api)
	})
	r := newRequest(t, fake, http.MethodPost, "/v3/webhooks", "{}")
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		asked <- err
	}()
	<-arrived
	fake.Close()
	fake.Close() // twice is once
	if err := <-asked; err == nil {
		t.Error("the request in flight is answered")
	}
	answer, err := http.DefaultClient.Do(newRequest(t, fake, http.MethodGet, "/v3/webhooks", ""))
	if err == nil {
		answer.Body.Close()
		t.Error("it still listens")
	}
	if _, err := clientOf(fake).Do(newRequest(t, fake, http.MethodGet, "/v3/webhooks", "")); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the client of a closed fake gets %v", err)
	}
}
