// Package gauge describes the metrics of package idem, and reads them. Package idemotel
// renders them for OpenTelemetry, and idemprom for Prometheus. For another system, make its
// instruments of [Metrics], and record:
//
//	gauge.Begin(&inbox.Endpoint, record)
//	inbox.Observe = func(_ context.Context, o idem.Observation) { gauge.Observe(o, record) }
//
//	var states gauge.States
//	states.AddBacklog(inbox.SourceName(), inbox.Stats)
//	err := states.Read(ctx, record) // at each scrape
//
// Gauges are looked at more often than the state should be read: [Sources] reads each source at
// most every 15 seconds, one after the other, and no looker waits long.
//
// [Queue] is the state of a provider's delivery queue, which such gauges and package
// console show.
package gauge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Sources are the sources of one kind of state. The zero value has none. Several
// goroutines may use it at once.
type Sources[T any] struct {
	mu      sync.Mutex
	sources []*source[T]
	next    time.Time     // no round begins before
	round   chan struct{} // closed when the current round is over; nil when there is none
}

const (
	every = 15 * time.Second // between the starts of two rounds of reading
	limit = 10 * time.Second // for reading one source
	wait  = 2 * time.Second  // for a round that is not over
	stale = time.Minute      // the age at which a sample is dropped
)

type source[T any] struct {
	name   string
	read   func(context.Context) (T, error)
	sample Sample[T]
	at     time.Time // of the sample; zero when there is none
}

// Sample is the state of one source, read at most a minute ago.
type Sample[T any] struct {
	Source string
	Value  T
	Err    error // the reason if there is no value
}

// Add adds a source, unless there is one of that name. read reads its state. Its context
// ends after 10 seconds. A panic is an error.
func (s *Sources[T]) Add(name string, read func(context.Context) (T, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.sources, func(o *source[T]) bool { return o.name == name }) {
		return
	}
	s.sources = append(s.sources, &source[T]{name: name, read: read})
	slices.SortFunc(s.sources, func(a, b *source[T]) int { return cmp.Compare(a.name, b.name) })
	s.next = time.Time{}
}

// Samples returns the newest sample of each source, by name. It begins a round of
// reading if one is due, and waits for it for 2 seconds at most.
func (s *Sources[T]) Samples(ctx context.Context) []Sample[T] {
	if round := s.begin(); round != nil {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		select {
		case <-round:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	samples := make([]Sample[T], len(s.sources))
	for n, o := range s.sources {
		samples[n] = o.sample
		if o.at.IsZero() || time.Since(o.at) > stale {
			samples[n] = Sample[T]{Source: o.name, Err: errors.New("reading it takes long: see what the database is doing")}
		}
	}
	return samples
}

// begin returns the current round, and begins one if it is due.
func (s *Sources[T]) begin() (round chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.round != nil || now.Before(s.next) || len(s.sources) == 0 {
		return s.round
	}
	s.round, s.next = make(chan struct{}), now.Add(every)
	go s.read(slices.Clone(s.sources))
	return s.round
}

// read reads all sources: it is one round.
func (s *Sources[T]) read(sources []*source[T]) {
	for _, o := range sources {
		sample := Sample[T]{Source: o.name}
		sample.Value, sample.Err = limited(o.read)
		s.mu.Lock()
		o.sample, o.at = sample, time.Now()
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.round)
	s.round = nil
}

// limited reads with a deadline. A panic is an error.
func limited[T any](read func(context.Context) (T, error)) (v T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return read(ctx)
}

// Queue is the state of a provider's delivery queue, as the provider reports it: of
// the events of one webhook that it has not delivered yet.
type Queue struct {
	ID   string // the provider's id of the queue, for [Queues.Release]
	Name string // the name that the queue has at the provider
	URL  string // where the provider delivers to, without parts that may be secret

	Enabled     bool // if false, the provider puts no events into the queue: events of that time never come
	Interrupted bool // the provider has stopped the queue: nothing is delivered until the queue is released
	Penalized   int  // failed deliveries that count against the queue; above 0, the provider pauses between attempts

	// DeletesIn is the time until the provider deletes the oldest waiting event, as
	// far as is known; 0 if it is not known. It is never less than a second, even
	// after that time.
	DeletesIn time.Duration

	// Problems are reasons for which events do not enter the queue, if the application had that
	// checked: one line each, for people, without secrets. An example is a handled event type
	// without a subscription.
	Problems []string
}

// Queues reads and releases the delivery queues of a provider that slows them down
// or stops them when deliveries fail. webhook.NewQueues returns one.
type Queues interface {
	// Queues asks the provider for all of its queues.
	Queues(ctx context.Context) ([]Queue, error)

	// Release probes the receiver and, only if that succeeds, resumes a queue that
	// is stopped or removes its penalty. It returns its changes in words for people,
	// also with an error. It may take minutes.
	Release(ctx context.Context, id string) (string, error)
}
