package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// Shares of the deliveries: those that repeat an acknowledged event, and those of events that are
// delivered twice at once.
const (
	duplicates = 0.05
	concurrent = 0.01
)

// repeatFor bounds the time after the end of a turn in which deliveries are repeated.
const repeatFor = 30 * time.Second

// sender delivers events to a receiver, and keeps its books.
type sender struct {
	url    string
	client *http.Client
	events *events
	last   atomic.Int64 // the number of the last event
	lost   atomic.Int64 // events that were never acknowledged

	payments, cents atomic.Int64 // of acknowledged events

	mu      sync.Mutex
	account account
}

// load delivers events until a time, so many at once, and then waits for those in flight.
func (s *sender) load(ctx context.Context, at int, until time.Time) {
	delivering, giveUp := context.WithDeadline(context.WithoutCancel(ctx), until.Add(repeatFor))
	defer giveUp()
	var workers sync.WaitGroup
	for range at {
		workers.Go(func() {
			var known []int64
			for ctx.Err() == nil && time.Now().Before(until) {
				if len(known) > 0 && rand.Float64() < duplicates {
					s.insist(delivering, known[rand.IntN(len(known))])
				} else if n := s.last.Add(1); s.deliver(delivering, n) {
					known = append(known[max(0, len(known)-63):], n)
				}
			}
		})
	}
	workers.Wait()
}

// deliver delivers a new event, alone or in two concurrent copies.
func (s *sender) deliver(ctx context.Context, n int64) bool {
	var copied sync.WaitGroup
	again := false
	if rand.Float64() < concurrent {
		copied.Go(func() { again = s.insist(ctx, n) })
	}
	reached := s.insist(ctx, n)
	copied.Wait()
	if !reached && !again {
		s.lost.Add(1)
		return false
	}
	s.payments.Add(1)
	s.cents.Add(cents(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account.acknowledged++
	return true
}

// insist delivers an event until it is answered 200. It reports whether it was.
func (s *sender) insist(ctx context.Context, n int64) bool {
	body := s.events.body(n)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		if s.post(ctx, body) {
			return true
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}

// post delivers a body once. It reports whether that was answered 200.
func (s *sender) post(ctx context.Context, body []byte) (ok bool) {
	start := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, asaas.TokenHeader: {token}}
	if answer, err := s.client.Do(r); err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		ok = err == nil && answer.StatusCode == http.StatusOK
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		s.account.answers = append(s.account.answers, time.Since(start))
	} else {
		s.account.not200++
	}
	return ok
}

// chargeCount is the number of charges. The events are about one after the other.
const chargeCount = 10_000

// events makes the events of one run, by number. The run is a part of all ids.
type events struct {
	run   string
	parts []string // of a body: between them are the id, the charge and the amount
}

func newEvents(run string) *events {
	const gap, amount = "§", "31415926535" // an amount cannot be a gap
	body := asaastest.Event("PAYMENT_RECEIVED",
		asaastest.Set("id", gap),
		asaastest.Set("payment.id", gap),
		asaastest.Set("payment.value", json.RawMessage(amount)))
	return &events{run, strings.Split(strings.Replace(string(body), amount, gap, 1), gap)}
}

func (e *events) body(n int64) []byte {
	amount := cents(n)
	return fmt.Appendf(nil, "%sevt_%s&%d%s%s%s%d.%02d%s",
		e.parts[0], e.run, n, e.parts[1], e.charge(n), e.parts[2], amount/100, amount%100, e.parts[3])
}

// charge returns the id of the charge of an event.
func (e *events) charge(n int64) string { return fmt.Sprintf("pay_%s_%d", e.run, n%chargeCount) }

// cents returns the amount of an event: up to a million reais, and without order, so
// that sums tell which events they are of.
func cents(n int64) int64 {
	x := uint64(n) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return int64((x^x>>32)%1e8) + 1
}
