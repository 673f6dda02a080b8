package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// provider delivers events as Asaas does.
type provider struct {
	at         int           // deliveries in flight at once
	duplicates float64       // the share of deliveries that repeat an acknowledged event
	concurrent float64       // the share of events that are delivered twice at once
	timeout    time.Duration // of a delivery
	repeatFor  time.Duration // how long deliveries go on being repeated after the end
}

// receiver takes deliveries, and counts their outcomes.
type receiver struct {
	url, token string
	client     *http.Client
	events     *events
	ledger     ledger

	numbers      atomic.Int64 // of the events sent
	acknowledged atomic.Int64 // events
	open         atomic.Int64 // events never acknowledged
	not200       atomic.Int64 // deliveries
	failure      atomic.Value // why the last of them was not, a string
	answers      histogram    // of all deliveries that were answered 200
	repeats      histogram    // of those of events that had been before
}

func newReceiver(url, token string, e *events, p *provider) *receiver {
	transport := &http.Transport{MaxIdleConns: 2 * p.at, MaxIdleConnsPerHost: 2 * p.at}
	return &receiver{
		url: url, token: token, events: e, ledger: ledger{events: e},
		client: &http.Client{Transport: transport, Timeout: p.timeout},
	}
}

// run delivers events as long as more says so and ctx has not ended, and then
// waits for those in flight.
func (p *provider) run(ctx context.Context, r *receiver, more func() bool) {
	delivering, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var end sync.Once
	var workers sync.WaitGroup
	for range p.at {
		workers.Go(func() {
			var known recent
			for ctx.Err() == nil && more() {
				p.deliver(delivering, r, &known)
			}
			end.Do(func() { time.AfterFunc(p.repeatFor, giveUp) })
		})
	}
	workers.Wait()
}

// deliver delivers an event, alone or in two concurrent copies, or repeats one.
func (p *provider) deliver(ctx context.Context, r *receiver, known *recent) {
	if n, ok := known.pick(); ok && rand.Float64() < p.duplicates {
		p.insist(ctx, r, n, &r.repeats)
		return
	}
	n := r.numbers.Add(1)
	var copies sync.WaitGroup
	var reached atomic.Bool
	deliver := func() {
		if p.insist(ctx, r, n, nil) {
			reached.Store(true)
		}
	}
	if rand.Float64() < p.concurrent {
		copies.Go(deliver)
	}
	deliver()
	copies.Wait()
	if !reached.Load() {
		r.open.Add(1)
		return
	}
	r.ledger.book(n)
	r.acknowledged.Add(1)
	known.add(n)
}

// insist delivers an event until it is answered 200. It reports whether it was.
func (p *provider) insist(ctx context.Context, r *receiver, n int64, also *histogram) bool {
	body := r.events.body(n)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		start := time.Now()
		err := r.post(ctx, body)
		if err == nil {
			took := time.Since(start)
			r.answers.add(took)
			if also != nil {
				also.add(took)
			}
			return true
		}
		r.not200.Add(1)
		r.failure.Store(err.Error())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}

// post makes one delivery; nil is a 200.
func (r *receiver) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(asaas.TokenHeader, r.token)
	resp, err := r.client.Do(req)
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Err // the address may hold a secret
	} else if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}

// recent are the last events that one of the provider's workers saw acknowledged.
type recent struct {
	events [64]int64
	n      int
}

func (r *recent) add(n int64) {
	r.events[r.n%len(r.events)] = n
	r.n++
}

func (r *recent) pick() (n int64, ok bool) {
	if r.n == 0 {
		return 0, false
	}
	return r.events[rand.IntN(min(r.n, len(r.events)))], true
}
