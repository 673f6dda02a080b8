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
	booked [charges]struct{ payments, cents atomic.Int64 }
}

// loaded holds the results of a turn's deliveries.
type loaded struct {
	acknowledged, not200 int64
	answers              []time.Duration // of the deliveries that were answered 200
}

// load delivers events until a time, so many at once, and then waits for those in flight.
func (s *sender) load(ctx context.Context, at int, until time.Time) (sum loaded) {
	delivering, giveUp := context.WithDeadline(context.WithoutCancel(ctx), until.Add(repeatFor))
	defer giveUp()
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range at {
		workers.Go(func() {
			var own loaded
			var known []int64
			for ctx.Err() == nil && time.Now().Before(until) {
				if len(known) > 0 && rand.Float64() < duplicates {
					s.insist(delivering, known[rand.IntN(len(known))], &own)
				} else if n := s.last.Add(1); s.deliver(delivering, n, &own) {
					known = append(known[max(0, len(known)-63):], n)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			sum.acknowledged += own.acknowledged
			sum.not200 += own.not200
			sum.answers = append(sum.answers, own.answers...)
		})
	}
	workers.Wait()
	return sum
}

// deliver delivers a new event, alone or in two concurrent copies.
func (s *sender) deliver(ctx context.Context, n int64, own *loaded) bool {
	var copied sync.WaitGroup
	var other loaded
	again := false
	if rand.Float64() < concurrent {
		copied.Go(func() { again = s.insist(ctx, n, &other) })
	}
	reached := s.insist(ctx, n, own)
	copied.Wait()
	own.answers, own.not200 = append(own.answers, other.answers...), own.not200+other.not200
	if !reached && !again {
		s.lost.Add(1)
		return false
	}
	own.acknowledged++
	entry := &s.booked[n%charges]
	entry.payments.Add(1)
	entry.cents.Add(cents(n))
	return true
}

// insist delivers an event until it is answered 200. It reports whether it was.
func (s *sender) insist(ctx context.Context, n int64, own *loaded) bool {
	body := s.events.body(n)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		start := time.Now()
		if s.post(ctx, body) == nil {
			own.answers = append(own.answers, time.Since(start))
			return true
		}
		own.not200++
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}

func (s *sender) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(asaas.TokenHeader, token)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}

// effects holds the payments of a charge in a database.
type effects struct {
	Charge          string
	Payments, Cents int64
}

// differences returns where the effects differ from what was acknowledged.
func (s *sender) differences(found []effects) (all []string) {
	there := map[string]effects{}
	for _, f := range found {
		there[f.Charge] = f
	}
	for n := range int64(charges) {
		charge := s.events.charge(n)
		payments, sum, is := s.booked[n].payments.Load(), s.booked[n].cents.Load(), there[charge]
		if is.Payments != payments || is.Cents != sum {
			all = append(all, fmt.Sprintf("%s: %d payments of %d cents were acknowledged, the database has %d of %d cents", charge, payments, sum, is.Payments, is.Cents))
		}
		delete(there, charge)
	}
	for charge := range there {
		all = append(all, charge+" is a charge of no event")
	}
	return all
}

// charges is the number of charges. The events are about one after the other.
const charges = 10_000

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
func (e *events) charge(n int64) string { return fmt.Sprintf("pay_%s_%d", e.run, n%charges) }

// cents returns the amount of an event: up to a million reais, and without order, so
// that sums tell which events they are of.
func cents(n int64) int64 {
	x := uint64(n) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return int64((x^x>>32)%1e8) + 1
}
