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

	mu    sync.Mutex
	state watched
}

// watched holds the results of the looks until now.
type watched struct {
	differences []Difference // of the last look that succeeded, those that lose events
	looked      bool         // once, at least
	failing     time.Time    // since when looks fail; zero if the last one succeeded
	err         error        // of the last look
}

// unknownAfter is the time for which looks may fail before the webhook is not known to be
// sound.
const unknownAfter = time.Hour

// NewWatch returns a watch of the webhook that [NewPlan] would compare
// with the same arguments. The Token of want is not needed.
func NewWatch(client *asaas.Client, want Settings, d *asaas.Dispatcher) *Watch {
	return &Watch{Every: 5 * time.Minute, client: client, want: func() Settings { return want }, dispatcher: d}
}

// Run looks, and looks again after Every, until ctx ends. A look that fails does
// not end it: see Findings.
func (w *Watch) Run(ctx context.Context) error {
	if w.Every <= 0 {
		return errors.New("webhook: Watch: Every is not positive: set how often to look")
	}
	for {
		_, _ = w.Look(ctx) // Findings has both
		select {
		case <-time.After(w.Every):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Look asks Asaas now, and returns the differences that lose events. An error is
// that of [NewPlan].
func (w *Watch) Look(ctx context.Context) ([]Difference, error) {
	p, err := NewPlan(ctx, w.client, w.want(), w.dispatcher)
	if err != nil {
		if ctx.Err() == nil { // a stop says nothing of Asaas
			w.note(nil, err)
		}
		return nil, err
	}
	lost := p.losses()
	w.note(lost, nil)
	return lost, nil
}

// SourceName returns "asaas", the name of its events' source.
func (w *Watch) SourceName() string { return source }

// Problems asks Asaas now, and returns a line for each thing that keeps events away, and
// how to repair them. They have no secret. Package doctor calls it.
func (w *Watch) Problems(ctx context.Context) (problems []string, advice string, err error) {
	lost, err := w.Look(ctx)
	for _, d := range lost {
		problems = append(problems, d.Text)
	}
	return problems, "see asaas-queue plan; asaas-queue apply repairs all that Asaas's API can", err
}

// Examine says how the webhook is, from Findings: the check "webhook" of package
// health. It makes no request.
func (w *Watch) Examine(context.Context, check.Limits) []check.Result {
	c := check.Result{Source: source, Name: "webhook"}
	var says []string
	says, c.Healthy = w.Findings()
	c.Says = strings.Join(says, "; ")
	if c.Says == "" {
		c.Says = "as far as Asaas says, it is enabled, and subscribed to all that the application handles"
	}
	if !c.Healthy {
		c.Says += ": see asaas-queue plan"
	}
	return []check.Result{c}
}

func (w *Watch) note(lost []Difference, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.err = err
	switch {
	case err == nil:
		w.state = watched{differences: lost, looked: true}
	case w.state.failing.IsZero():
		w.state.failing = time.Now()
	}
}

// Findings returns a line for each thing that keeps events away, as of the last
// look that succeeded, and whether all is well. The lines have no secret. It
// makes no request.
//
// A look that failed is a line. It means that all is not well only if looks have
// failed for an hour, or if the settings are wrong: Asaas's API may be away for a
// while. Before the first look there is nothing to say, and all is well.
func (w *Watch) Findings() (says []string, sound bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	sound = len(s.differences) == 0
	for _, d := range s.differences {
		says = append(says, d.Text)
	}
	if s.err == nil {
		return says, sound
	}
	_, isCall := errors.AsType[*asaas.APIError](s.err)
	failing := time.Since(s.failing)
	if isCall {
		says = append(says, fmt.Sprintf("the webhook could not be looked at for %s: %v", failing.Round(time.Second), s.err))
		return says, sound && failing < unknownAfter
	}
	return append(says, s.err.Error()), false
}

// annotate takes a list of all webhooks for a look, and adds its findings to their
// queues.
func (w *Watch) annotate(queues []gauge.Queue, all []*asaas.Webhook) []gauge.Queue {
	p, err := planFor(w.client, all, w.want(), w.dispatcher)
	if err != nil {
		w.note(nil, fmt.Errorf("webhook: Watch: %w", err))
		return append(queues, w.missing(err.Error()))
	}
	lost := p.losses()
	w.note(lost, nil)
	var problems []string
	for _, d := range lost {
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
