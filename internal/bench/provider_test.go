package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// deliveries are what a server of the test receives, by event.
type deliveries struct {
	mu sync.Mutex
	of map[string]int
}

// server answers with what handle says for an event's delivery of that number.
func server(t *testing.T, p *provider, handle func(r *http.Request, id string, delivery int) int) *receiver {
	t.Helper()
	d := &deliveries{of: make(map[string]int)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id := asaas.Identify(body).ID
		d.mu.Lock()
		d.of[id]++
		n := d.of[id]
		d.mu.Unlock()
		w.WriteHeader(handle(r, id, n))
	}))
	t.Cleanup(s.Close)
	return newReceiver(s.URL, "token", newEvents("run"), p)
}

func TestWhatIsNotAnswered200IsDeliveredAgain(t *testing.T) {
	t.Parallel()
	p := &provider{at: 4, timeout: time.Minute, repeatFor: time.Minute}
	r := server(t, p, func(_ *http.Request, _ string, delivery int) int {
		return []int{http.StatusServiceUnavailable, http.StatusAccepted, http.StatusOK}[min(delivery, 3)-1]
	})
	p.run(t.Context(), r, r.upTo(8))
	if failure := r.failure.Load(); failure != "it answered 202 Accepted" && failure != "it answered 503 Service Unavailable" {
		t.Errorf("the last failure is %v", failure)
	}
	if sent := r.numbers.Load(); sent < 8 || r.acknowledged.Load() != sent || r.not200.Load() != 2*sent || r.answers.total.Load() != sent || r.open.Load() != 0 {
		t.Errorf("of %d events %d were acknowledged, %d are open; %d deliveries failed and %d did not",
			sent, r.acknowledged.Load(), r.open.Load(), r.not200.Load(), r.answers.total.Load())
	}
}

func TestADeliveryWithoutAnAnswerIsGivenUpAndRepeated(t *testing.T) {
	t.Parallel()
	p := &provider{at: 1, timeout: 50 * time.Millisecond, repeatFor: time.Minute}
	release := make(chan struct{})
	defer close(release)
	r := server(t, p, func(_ *http.Request, _ string, delivery int) int {
		if delivery == 1 {
			<-release
		}
		return http.StatusOK
	})
	p.run(t.Context(), r, r.upTo(1))
	if r.acknowledged.Load() != 1 || r.not200.Load() == 0 {
		t.Errorf("%d acknowledged, %d deliveries failed", r.acknowledged.Load(), r.not200.Load())
	}
}

func TestConcurrentCopiesAreInFlightTogether(t *testing.T) {
	t.Parallel()
	p := &provider{at: 2, concurrent: 1, timeout: time.Minute, repeatFor: time.Minute}
	var both sync.Map
	r := server(t, p, func(_ *http.Request, id string, delivery int) int {
		met, _ := both.LoadOrStore(id, make(chan struct{}))
		if delivery == 2 {
			close(met.(chan struct{}))
		}
		<-met.(chan struct{}) // permanently, if the other one waits for this
		return http.StatusOK
	})
	p.run(t.Context(), r, r.upTo(6))
	if sent := r.numbers.Load(); r.acknowledged.Load() != sent || r.answers.total.Load() != 2*sent {
		t.Errorf("of %d events %d were acknowledged, in %d answers", sent, r.acknowledged.Load(), r.answers.total.Load())
	}
}

func TestDuplicatesAreOfAcknowledgedEvents(t *testing.T) {
	t.Parallel()
	p := &provider{at: 3, duplicates: 0.5, timeout: time.Minute, repeatFor: time.Minute}
	var acknowledged sync.Map
	r := server(t, p, func(_ *http.Request, id string, delivery int) int {
		if _, ok := acknowledged.Load(id); delivery > 1 && !ok {
			t.Errorf("delivery %d of %s, which was not acknowledged", delivery, id)
		}
		acknowledged.Store(id, true)
		return http.StatusOK
	})
	p.run(t.Context(), r, r.upTo(200))
	if repeats := r.repeats.total.Load(); repeats < 50 || r.answers.total.Load() != repeats+r.acknowledged.Load() {
		t.Errorf("%d of %d deliveries were repeated", repeats, r.answers.total.Load())
	}
}

func TestEventsThatAreNeverAcknowledgedAreReported(t *testing.T) {
	t.Parallel()
	p := &provider{at: 3, timeout: time.Minute, repeatFor: time.Millisecond}
	r := server(t, p, func(*http.Request, string, int) int { return http.StatusInternalServerError })
	deliver := true
	var mu sync.Mutex
	p.run(t.Context(), r, func() bool {
		mu.Lock()
		defer mu.Unlock()
		first := deliver
		deliver = false
		return first
	})
	if r.open.Load() != 1 || r.acknowledged.Load() != 0 || r.ledger.booked[1].payments.Load() != 0 {
		t.Errorf("%d open, %d acknowledged", r.open.Load(), r.acknowledged.Load())
	}
}
