package idem

import (
	"time"

	"github.com/paghooks/paghooks/idem/internal/batch"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Inbox receives the events of one source, stores them, answers, and has
// workers process them afterwards: each event once, those of one Key in order.
// Handlers, tables and promises are those of [Processor]; only the provider
// does not wait for the work. It is an [http.Handler]; [Inbox.Accept] stores
// without HTTP, and [Inbox.Run] works.
//
// The exported fields, and those of [Common], are settings: change them before
// the first event.
type Inbox struct {
	Common

	// Workers is the number of handlers that one call of [Inbox.Run] runs at once; each
	// holds a connection. Default: three quarters of the pool's connections, and
	// a quarter of an outbox. Where those that [Serve] runs would hold all of them
	// together, it has fewer, so that a connection is left for deliveries.
	Workers int

	// StopTimeout is the time for which running handlers may go on once the context of
	// [Inbox.Run] has ended; then they are canceled and rolled back, and their
	// events wait for the next worker. Default: 10 seconds.
	StopTimeout time.Duration

	// MaxAttempts is the number of attempts after which an event is parked.
	// Default: 20, which takes eight hours.
	MaxAttempts int

	// MaxCrashes is the number of processes in a row that may die while they process
	// an event, or be cut off from Postgres, until it is parked without another
	// attempt. After two the event runs alone in its process, for its first 5 seconds.
	// When its handler returns, also with an error, they are forgotten. Default: 3.
	MaxCrashes int

	// Backoff returns the time to wait after the attempt of that number, counted
	// from 1, has failed. Default: [DefaultBackoff].
	Backoff func(attempt int) time.Duration

	// Poll is the interval at which workers look for events without being woken:
	// those that are due again, and all of other processes if PollOnly is set.
	// Default: 1 second.
	Poll time.Duration

	// PollOnly does without LISTEN and NOTIFY, for poolers such as PgBouncer.
	// Default: false.
	PollOnly bool

	writer *batch.Writer[store.Incoming, result]
	locked *batch.Writer[store.Incoming, result] // of events with a row that another transaction holds
	sender *notify.Sender
	wake   chan struct{} // for the workers of this process

	defaultWorkers int // Workers, unless the application has set it
}

// channel is the channel that the inboxes of all sources notify.
const channel = "idem_inbox"

// storeTime is the time that storing an event may take. A provider waits for it.
const storeTime = 8 * time.Second

// Wake has the workers, here and in other processes, look for events now: call it once a
// transaction that stores events, as an outbox does, is committed. They look by
// themselves every Poll.
func (i *Inbox) Wake() {
	i.wakeOwn()
	if !i.PollOnly {
		i.sender.Send()
	}
}

// wakeOwn wakes the workers of this process.
func (i *Inbox) wakeOwn() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}
