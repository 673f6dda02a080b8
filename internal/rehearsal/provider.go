package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// steps are the events of a payment, in order.
var steps = []asaas.EventType{asaas.EventPaymentCreated, asaas.EventPaymentUpdated, asaas.EventPaymentConfirmed, asaas.EventPaymentReceived}

func step(t asaas.EventType) int {
	for n, s := range steps {
		if s == t {
			return n
		}
	}
	return -1
}

// event is one that the provider sends.
type event struct {
	id, payment string
	step        int
	again       bool // delivered once more after it was acknowledged: one of twenty
	body        []byte
}

func newEvent(run string, payment, n int) event {
	e := event{id: fmt.Sprintf("evt_%s&%d", run, payment*len(steps)+n), payment: fmt.Sprintf("pay_%s%d", run, payment), step: n, again: n == 1 && payment%5 == 0}
	at := time.Date(2026, 11, 22, 0, 0, payment*len(steps)+n, 0, time.UTC)
	e.body = fmt.Appendf(nil, `{"id":%q,"event":%q,"dateCreated":%q,"payment":{"object":"payment","id":%q,"status":"PENDING","value":%d}}`,
		e.id, steps[n], at.Format(time.DateTime), e.payment, 10+payment%90)
	return e
}

// provider sends events as a provider does: each until it is answered 200, those of
// a payment one after the other, and one of twenty again after that.
type provider struct {
	url    string
	run    string // the prefix of the ids of its events
	client *http.Client

	mu           sync.Mutex
	acknowledged map[string]event
	milestones   map[int]chan struct{}
	refused      int // deliveries without a 200
	watching     time.Time
	first        time.Duration // from watching to the first 200 of a delivery that began after it
}

func newProvider(url, run string, at int) *provider {
	return &provider{
		url: url, run: run, acknowledged: make(map[string]event), milestones: make(map[int]chan struct{}),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: at}},
	}
}

// reached is closed once n events are acknowledged. Ask before send.
func (p *provider) reached(n int) <-chan struct{} {
	p.milestones[n] = make(chan struct{})
	return p.milestones[n]
}

// send sends the events of so many payments, and returns when all are acknowledged
// or ctx has ended.
func (p *provider) send(ctx context.Context, payments, at int) {
	var lanes sync.WaitGroup
	for lane := range at {
		lanes.Go(func() {
			for payment := lane; payment < payments; payment += at {
				for n := range steps {
					p.insist(ctx, newEvent(p.run, payment, n))
				}
			}
		})
	}
	lanes.Wait()
}

// insist delivers an event until it is acknowledged.
func (p *provider) insist(ctx context.Context, e event) {
	for wait := 20 * time.Millisecond; !p.deliver(ctx, e); wait = min(2*wait, 500*time.Millisecond) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
	if e.again {
		p.deliver(ctx, e) // the first answer was lost, say
	}
}

func (p *provider) deliver(ctx context.Context, e event) bool {
	start := time.Now()
	answer, err := p.client.Do(asaastest.Request(p.url, token, e.body).WithContext(ctx))
	ok := err == nil && answer.StatusCode == http.StatusOK
	if err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // an answer that is read whole frees its connection
		answer.Body.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		p.refused++
		return false
	}
	if !p.watching.IsZero() && start.After(p.watching) && p.first == 0 {
		p.first = time.Since(p.watching)
	}
	if _, again := p.acknowledged[e.id]; !again {
		p.acknowledged[e.id] = e
		if reached, ok := p.milestones[len(p.acknowledged)]; ok {
			close(reached)
		}
	}
	return true
}

// watch measures how long it takes from then to the next 200.
func (p *provider) watch(from time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = from
}

// list returns the events that the provider has delivered.
func (p *provider) list() (all []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.acknowledged {
		all = append(all, e)
	}
	return all
}
