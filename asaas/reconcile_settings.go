package asaas

import (
	"context"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Reconciliation holds the settings of [Reconcile].
type Reconciliation struct {
	// WebhookID is the webhook that may not have delivered everything.
	WebhookID string

	// Events is the store of the application's events, its [idem.Processor] or
	// [idem.Inbox]. Scope is the account that they are of; "" for the only one.
	Events ArrivalStore
	Scope  string

	// Since is the beginning of the gap: the time before which every event is known to
	// have arrived. Days are compared, with one more day before it.
	Since time.Time

	// Until is the end of the gap. Default: now.
	Until time.Time

	// Types are the event types that the application needs; see
	// [Dispatcher.Types]. Default: those that the webhook subscribes to.
	Types []EventType

	// Open are the ids of the charges that the application waits for. Each that no
	// list has is asked for by itself. A charge that was removed at Asaas is found
	// here only.
	Open []string

	// Says returns the application's own state of a charge: [StateOf] of the charge
	// if the application agrees with Asaas, and any other text if it does not. known
	// is false if the application has no such charge, one that somebody made by hand
	// at Asaas for example. The empty text makes no statement. Default: nil, and only
	// events are compared.
	Says func(ctx context.Context, p *Payment) (state string, known bool, err error)

	// Grace is the age from which something is reported: its event may be on the
	// way. Asaas reports days, so a day counts once all of it is older. Default: an hour.
	Grace time.Duration

	// Retention is that of Events: nothing is known of older events that are not
	// stored. Default: 45 days, as of [idem.Common].
	Retention time.Duration

	// Calls is the number of calls of the API that a run may make, 200 or more. They come out of
	// the account's own quota of 25,000 in 12 hours. A call that is sent again after
	// a failure counts once. Default: 1,000.
	Calls int

	// Pause is the time between two calls. Default: 250 milliseconds.
	Pause time.Duration

	// Resume is the Cursor of a run that did not come to its end. Default: nil, which
	// begins anew.
	Resume *ReconcileCursor
}

// ArrivalStore is the store of an application's events: an [*idem.Processor] or
// [*idem.Inbox].
type ArrivalStore interface {
	Arrivals(ctx context.Context, scope string, keys []string, since time.Time) ([]idem.StoredEvent, error)
}

var (
	_ ArrivalStore = (*idem.Processor)(nil)
	_ ArrivalStore = (*idem.Inbox)(nil)
)
