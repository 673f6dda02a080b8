package brokertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/internal/port"
)

// Broker is a module under test.
type Broker struct {
	// Open makes a queue that is empty and that no other test has. It closes all that it
	// opened with t.Cleanup. Tests run in parallel.
	Open func(t testing.TB) Queue

	// OpenOwn is Open on a broker of the test's own, for tests that restart it or
	// have it hang. Default: Open.
	OpenOwn func(t testing.TB) Queue
}

// Queue is a queue, a topic or a stream of a broker. A field that it cannot offer is zero.
type Queue struct {
	Publisher broker.Publisher // to the queue; its errors name the message by its Type and ID

	// Consume gives the queue's messages to handle until ctx ends, as the module
	// has its users do it. It is called again after it has returned, and by several
	// goroutines at once: they share the messages.
	Consume func(ctx context.Context, handle broker.Handle) error

	// Address identifies the queue in another process, which opens it with the
	// function that [Main] got. Tests that kill processes need it.
	Address string

	// AckTimeout is the time for which a consumer may hold a message, unless it asks for more
	// time, until the broker delivers it again. Make it a few seconds.
	AckTimeout time.Duration

	// Ordered says that the broker delivers the messages of a Key in order, and no
	// two at the same time, however many processes consume: that suffices for
	// first tries, and for an inbox that several processes consume into.
	Ordered bool

	// Oversize is a size in bytes that no body may exceed: its error has
	// [broker.ErrTooLarge].
	Oversize int

	// Nowhere publishes to a place that does not exist, a queue, a subject or a topic: its error
	// has [broker.ErrNoQueue].
	Nowhere broker.Publisher

	// Restart stops the broker, starts it again on the same data, and returns.
	Restart func(t testing.TB)

	// Hang has the broker answer nothing, without closing connections, until resume
	// is called. It may be called more than once.
	Hang func(t testing.TB) (resume func())
}

// Run runs all tests.
func Run(t *testing.T, b Broker) {
	if b.OpenOwn == nil {
		b.OpenOwn = b.Open
	}
	for _, test := range []struct {
		promise string
		open    func(testing.TB) Queue
		keep    func(*shop)
	}{
		{"FirstTriesHandleEveryEventOnce", b.Open, firstTriesHandleEveryEventOnce},
		{"DuplicatesHaveOneEffect", b.Open, duplicatesHaveOneEffect},
		{"WhatComesAgainHasOneEffect", b.Open, comesAgain},
		{"TheBrokersOrderSufficesForFirstTries", b.Open, brokersOrderSuffices},
		{"TheBrokersOrderIsTheInboxs", b.Open, brokersOrderIsTheInboxs},
		{"PoisonIsParkedByWorkersAndBlocksNobody", b.Open, poisonIsParkedByWorkers},
		{"ACanaryGoesThroughRelayBrokerAndConsumer", b.Open, canaryGoesThrough},
		{"WhatCannotBePublishedIsAnErrorAndLosesNothing", b.Open, unpublishedIsAnError},
		{"ASlowHandlerRunsOnceAtATime", b.Open, slowHandlerRunsOnce},
		{"ShutdownLosesNothing", b.Open, shutdownLosesNothing},
		{"AStopOfOneOfTwoConsumersKeepsTheOrder", b.Open, stopKeepsTheOrder},
		{"NothingIsLostWhilePostgresIsUnavailable", b.Open, postgresUnavailable},
		{"AKilledConsumersEventsHaveOneEffect", b.Open, killedConsumer},
		{"AKilledConsumersEventsHaveOneEffectThatWorksFirst", b.Open, killedFirst},
		{"ARelayKilledBeforeItsAnswerLosesAndDoublesNothing", b.Open, killedRelay},
		{"ARestartOfTheBrokerLosesAndDoublesNothing", b.OpenOwn, brokerRestarts},
		{"ABrokerThatHangsIsAnsweredWith503InTime", b.OpenOwn, brokerHangs},
		{"AnOutboxPublishesInOrderWithAllAttributes", b.Open, outboxPublishes},
		{"AnOutboxParksNothingWhileItsBrokerHangs", b.OpenOwn, outboxOutlivesAnOutage},
	} {
		t.Run(test.promise, func(t *testing.T) {
			t.Parallel()
			test.keep(newShop(t, test.open(t)))
		})
	}
}

// Background calls f in another goroutine, with a context that ends when stop is called, or at the
// end of the test. stop waits until f has returned, and reports an error of f as one of the test.
func Background(t testing.TB, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error("stopped with an error: ", err)
			}
		case <-time.After(longestWait):
			t.Errorf("does not stop within %s", longestWait)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Next returns the next value of a channel, or the zero T once that is closed. It fails a
// test that waits for more than a minute.
func Next[T any](t testing.TB, happens <-chan T) T {
	t.Helper()
	select {
	case v := <-happens:
		return v
	case <-time.After(time.Minute):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

// FreePort returns a port of 127.0.0.1 for a server that a test starts, and starts
// again: no server listens on it, and no connection that a program opens takes it
// meanwhile.
func FreePort() (int, error) { return port.Free() }
