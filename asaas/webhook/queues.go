package webhook

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/internal/shown"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/idem/value"
)

// Queues reads, releases and enables the queues of an account's webhooks, for package console
// and for metrics. Make it with [NewQueues].
//
// Asaas does not report when it will delete waiting events. Queues estimates that:
// events of a queue that was not held up when it was last read were, as a rule,
// created after that. So keep one Queues as long as the program runs, and read it
// from time to time. Right after a start it is not known, and
// [gauge.Queue].DeletesIn is 0.
//
// Several goroutines may use it at once.
type Queues struct {
	// Watch, if not nil, has each reading compare the application's webhook with
	// the types that the application handles. The differences that keep events away
	// are in [gauge.Queue].Problems. A webhook that does not exist is a queue without
	// an ID, and not enabled.
	// Default: nil. Set it before the first reading.
	Watch *Watch

	client *asaas.Client
	token  func() string    // a function, so that printing shows no token
	events asaas.EventStore // may be nil

	mu    sync.Mutex
	sound map[string]time.Time // when nothing of the webhook was held up last
}

var _ gauge.Queues = (*Queues)(nil)

// NewQueues returns the queues of the account of client. token and events, which may be nil, are
// those of [asaas.Recover], which [Queues.Release] runs.
func NewQueues(client *asaas.Client, token string, events asaas.EventStore) *Queues {
	return &Queues{client: client, token: func() string { return token }, events: events, sound: make(map[string]time.Time)}
}

// Queues lists the account's webhooks with the state of their queues. It makes
// one call of the API for each 100 of them; Asaas allows 25,000 in 12 hours. The
// error of a call is an [*asaas.APIError].
func (q *Queues) Queues(ctx context.Context) ([]gauge.Queue, error) {
	var out []gauge.Queue
	var all []*asaas.Webhook
	for w, err := range q.client.Webhooks(ctx) {
		if err != nil {
			return nil, err
		}
		if w.Interrupted.IsZero() || w.PenalizedRequestsCount.IsZero() { // a missing field does not mean that all is well
			return nil, fmt.Errorf("webhook: Queues: Asaas does not say whether the queue of %s is held up: see the webhook at Asaas, and what answers at the API's address", shown.Clean(w.ID))
		}
		one := gauge.Queue{
			ID: w.ID, Name: w.Name.Or(""), URL: shown.Place(w.URL.Or("")),
			Enabled: w.Enabled.Or(true), Interrupted: w.Interrupted.Or(false), Penalized: int(w.PenalizedRequestsCount.Or(0)),
		}
		out, all = append(out, one), append(all, w)
	}
	if q.Watch != nil {
		out = q.Watch.annotate(out, all)
	}
	q.estimateDeletion(out)
	q.remember(out)
	return out, nil
}

func isHeldUp(q gauge.Queue) bool { return q.Interrupted || q.Penalized > 0 }

// estimateDeletion sets DeletesIn where it is known.
func (q *Queues) estimateDeletion(queues []gauge.Queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := range queues {
		one := &queues[n]
		since := q.sound[one.ID]
		if isHeldUp(*one) && !since.IsZero() {
			one.DeletesIn = max(asaas.TimeLeft(since), time.Second)
		}
	}
}

// remember notes which queues have nothing held up.
func (q *Queues) remember(queues []gauge.Queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range queues {
		if one.ID != "" && !isHeldUp(one) {
			q.sound[one.ID] = time.Now()
		}
	}
}

// Release runs [asaas.Recover] with the token and the events of [NewQueues], and
// returns its steps as a text. It takes as long: 15 seconds when all is well,
// minutes if Asaas's count of failures does not fall.
func (q *Queues) Release(ctx context.Context, id string) (string, error) {
	var did []string
	for progress, err := range asaas.Recover(ctx, q.client, id, q.token(), q.events) {
		if err != nil {
			return strings.Join(did, "; "), err
		}
		if progress.Step != asaas.RecoveryWatching {
			did = append(did, progress.String())
		}
	}
	return strings.Join(did, "; "), nil
}

// Enable has Asaas make events for a webhook again. What happened while it was disabled never comes as events: a
// charges.Daily books it, and asaas-queue reconcile prints it. The error of a call is an [*asaas.APIError].
func (q *Queues) Enable(ctx context.Context, id string) (string, error) {
	w, err := q.client.UpdateWebhook(ctx, id, asaas.WebhookUpdate{Enabled: value.Of(true)})
	if err != nil {
		return "", err
	}
	if !w.Enabled.Or(false) {
		return "", fmt.Errorf("webhook: Queues: Asaas says that %s is still disabled: see the webhook at Asaas", shown.Clean(id))
	}
	return "the webhook was enabled: what happened before never comes as events, see asaas-queue reconcile", nil
}
