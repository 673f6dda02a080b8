package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/internal/shown"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// Watch looks at the application's webhook from time to time and reports
// faults that keep events away, which no delivery shows: the webhook is disabled (Asaas
// does that by itself to a queue that was stopped for 30 days), deleted, or stopped,
// a type that the application handles is not subscribed to, deliveries are in no
// order. Make it with [NewWatch], give it to idem.Serve, which runs it, and to
// health.New, which asks it.
//
// Several goroutines may use it at once. The exported field is a setting: change it
// before Run.
type Watch struct {
	// Every is the time between two looks. Each is one call of the API. Default: 5
	// minutes.
	Every time.Duration

	client     *asaas.Client
	want       func() Settings // a function, so that printing shows no token
	dispatcher *asaas.Dispatcher

	mu      sync.Mutex
	lost    []Difference // that the last look found which succeeded
	err     error        // of the last look
	failing time.Time    // since when looks fail; zero if the last one succeeded
}

const source = "asaas" // of the webhook's events

// unknownAfter is the time for which looks may fail before the webhook is not known to be
// sound.
const unknownAfter = time.Hour

// NewWatch returns a watch of the webhook that [NewPlan] would compare
// with the same arguments. The Token of want is not needed.
func NewWatch(client *asaas.Client, want Settings, d *asaas.Dispatcher) *Watch {
	return &Watch{Every: 5 * time.Minute, client: client, want: func() Settings { return want }, dispatcher: d}
}

// Run looks, and looks again after Every, until ctx ends. A look that fails does
// not end it: see Examine.
func (w *Watch) Run(ctx context.Context) error {
	if w.Every <= 0 {
		return errors.New("webhook: Watch: Every is not positive: set how often to look")
	}
	for {
		_, _ = w.look(ctx) // Examine has both
		select {
		case <-time.After(w.Every):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look asks Asaas now, and returns the differences that lose events.
func (w *Watch) look(ctx context.Context) ([]Difference, error) {
	p, err := NewPlan(ctx, w.client, w.want(), w.dispatcher)
	if err != nil {
		if ctx.Err() == nil { // a stop says nothing of Asaas
			w.note(nil, err)
		}
		return nil, err
	}
	return w.note(p.losses(), nil), nil
}

// note keeps the result of a look.
func (w *Watch) note(lost []Difference, err error) []Difference {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	switch {
	case err == nil:
		w.lost, w.failing = lost, time.Time{}
	case w.failing.IsZero():
		w.failing = time.Now()
	}
	return lost
}

// SourceName returns "asaas", the name of its events' source.
func (w *Watch) SourceName() string { return source }

// Problems asks Asaas now, and returns a line for each thing that keeps events away, and
// how to repair them. They have no secret. Package doctor calls it.
func (w *Watch) Problems(ctx context.Context) (problems []string, advice string, err error) {
	lost, err := w.look(ctx)
	for _, d := range lost {
		problems = append(problems, d.Text)
	}
	return problems, "see asaas-queue plan; asaas-queue apply repairs all that Asaas's API can", err
}

// Examine says what keeps events away, as of the last look that succeeded: the check "webhook" of package
// health. It makes no request, and has no secret. Before the first look all is well.
//
// A look that failed is said, and fails the check if looks have failed for an hour, or if the settings are
// wrong: Asaas's API may be away for a while.
func (w *Watch) Examine(context.Context, check.Limits) []check.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := check.Result{Source: source, Name: "webhook", Healthy: len(w.lost) == 0}
	var says []string
	for _, d := range w.lost {
		says = append(says, d.Text)
	}
	if w.err != nil {
		text, failing := w.err.Error(), time.Since(w.failing)
		_, isCall := errors.AsType[*asaas.APIError](w.err)
		if isCall {
			text = fmt.Sprintf("the webhook could not be looked at for %s: %v", failing.Round(time.Second), w.err)
		}
		says, c.Healthy = append(says, text), c.Healthy && isCall && failing < unknownAfter
	}
	c.Says = strings.Join(says, "; ")
	if c.Says == "" {
		c.Says = "as far as Asaas says, it is enabled, and subscribed to all that the application handles"
	}
	if !c.Healthy {
		c.Says += ": see asaas-queue plan"
	}
	return []check.Result{c}
}

// annotate takes a list of all webhooks for a look, and adds its findings to their
// queues.
func (w *Watch) annotate(queues []gauge.Queue, all []*asaas.Webhook) []gauge.Queue {
	p, err := planFor(w.client, all, w.want(), w.dispatcher)
	if err != nil {
		w.note(nil, fmt.Errorf("webhook: Watch: %w", err))
		return append(queues, w.missing(err.Error()))
	}
	var problems []string
	for _, d := range w.note(p.losses(), nil) {
		if d.Field != "enabled" && d.Field != "interrupted" { // the queue has fields of its own for these
			problems = append(problems, d.Text)
		}
	}
	found := matching(all, w.want())
	if len(found) == 0 {
		return append(queues, w.missing(problems...))
	}
	for n := range queues {
		if slices.ContainsFunc(found, func(f *asaas.Webhook) bool { return f.ID == queues[n].ID }) {
			queues[n].Problems = problems
		}
	}
	return queues
}

// missing stands for the queue of a webhook that does not exist.
func (w *Watch) missing(problems ...string) gauge.Queue {
	return gauge.Queue{Name: w.want().Name, URL: shown.Place(w.want().URL), Problems: problems}
}
