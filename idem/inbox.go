package idem

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Inbox receives the events of one source, stores them, answers, and has
// workers do their work afterwards: each event once, those of one Key in order.
// Handlers, tables and promises are those of [Processor]; only the provider
// does not wait for the work. It is an [http.Handler]; [Inbox.Accept] stores
// without HTTP, and [Inbox.Run] works.
//
// The embedded Processor has the settings and the operations that both share.
// Its Timeout bounds the storing here, and its ParkAfter means nothing. The
// exported fields are settings: change them before the first event.
type Inbox struct {
	Processor

	// Workers is how many handlers one call of [Inbox.Run] runs at once; each
	// holds a connection. Default: three quarters of the pool's connections.
	Workers int

	// WorkTimeout is how long a handler may take. Default: 30 seconds.
	WorkTimeout time.Duration

	// StopTimeout is how long running handlers may go on once the context of
	// [Inbox.Run] has ended; then they are cancelled and rolled back, and their
	// events wait for the next worker. Default: 10 seconds.
	StopTimeout time.Duration

	// MaxAttempts is how often an event's work is tried until the event is
	// kept as failed. Default: 20, which takes eight hours.
	MaxAttempts int

	// MaxCrashes is the number of processes that may die while they work on an
	// event, until it is kept as failed without another try. Default: 3.
	MaxCrashes int

	// Backoff is how long to wait after the attempt of that number, counted
	// from 1, has failed. Default: [DefaultBackoff].
	Backoff func(attempt int) time.Duration

	// PassParked lets later events of a Key go on when one is kept as failed.
	// Default: false, they wait until it is replayed or discarded.
	PassParked bool

	// Poll is how often workers look for events that nobody woke them for:
	// those that are due again, and all of other processes if PollOnly is set.
	// Default: 1 second.
	Poll time.Duration

	// PollOnly does without LISTEN, for poolers such as PgBouncer, and without
	// NOTIFY for what is stored.
	// Default: false.
	PollOnly bool

	// WaitForDisk has the workers wait until each commit is on disk. Without,
	// a crash of Postgres may undo the work of its last moment, together with the
	// record that it was done: it is done again then, because the event itself
	// was on disk before it was acknowledged. Default: false, which is twice as
	// fast.
	WaitForDisk bool

	arrivals arrivals
	news     news
	wake     chan struct{}
	name     string // tells this process's notifications from others'
	chains   bool   // workers may begin an event with the COMMIT of another one
}

// NewInbox returns an inbox for the events of source, with its settings at
// their defaults. The tables must exist: see [Migrate].
func NewInbox(pool *pgxpool.Pool, source Source) *Inbox {
	config := pool.Config()
	conns := int(config.MaxConns)
	return &Inbox{
		Processor:   *NewProcessor(pool, source),
		Workers:     max(1, conns*3/4),
		WorkTimeout: 30 * time.Second,
		StopTimeout: 10 * time.Second,
		MaxAttempts: 20,
		MaxCrashes:  3,
		Backoff:     DefaultBackoff,
		Poll:        time.Second,
		wake:        make(chan struct{}, 1),
		name:        rand.Text(),
		arrivals:    arrivals{most: max(1, min(conns/4, 4))},
		// This mode describes all statements before it executes the first: with the search_path of the handler.
		chains: config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeDescribeExec,
	}
}

// ServeHTTP receives one delivery as [Processor.ServeHTTP] does, and answers
// 200 once the event is on disk.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.serve(w, r, i.receive)
}

// Accept stores one verified event without HTTP, as [Processor.Accept] works
// on it: a nil error means that the event need not come again.
func (i *Inbox) Accept(ctx context.Context, e Event) (Outcome, error) {
	outcome, err := Retrying, error(nil)
	i.receive(ctx, e, func(o Outcome, e error) { outcome, err = o, e })
	if outcome.Acknowledged() {
		return outcome, nil
	}
	return outcome, err
}

var _ http.Handler = (*Inbox)(nil)
