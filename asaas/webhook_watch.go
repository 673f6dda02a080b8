package asaas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// WebhookWatch looks at the application's webhook from time to time and reports
// faults that keep events away, which no delivery shows: the webhook is disabled (Asaas
// does that by itself to a queue that was stopped for 30 days), deleted, or stopped,
// a type that the application handles is not subscribed to, deliveries are in no
// order. Make it with [NewWebhookWatch], give it to idem.Serve, which runs it, and to
// health.New, which asks it.
//
// Several goroutines may use it at once. The exported field is a setting: change it
// before Run.
type WebhookWatch struct {
	// Every is the time between two looks. Each is one call of the API. Default: 5
	// minutes.
	Every time.Duration

	client     *Client
	want       func() WebhookSettings // a function, so that printing shows no token
	dispatcher *Dispatcher

	mu    sync.Mutex
	state watched
}

// watched holds the results of the looks until now.
type watched struct {
	differences []WebhookDifference // of the last look that succeeded, those that lose events
	looked      bool                // once, at least
	failing     time.Time           // since when looks fail; zero if the last one succeeded
	err         error               // of the last look
}

// unknownAfter is the time for which looks may fail before the webhook is not known to be
// sound.
const unknownAfter = time.Hour

// NewWebhookWatch returns a watch of the webhook that [PlanWebhook] would compare
// with the same arguments. The Token of want is not needed.
func NewWebhookWatch(client *Client, want WebhookSettings, d *Dispatcher) *WebhookWatch {
	return &WebhookWatch{Every: 5 * time.Minute, client: client, want: func() WebhookSettings { return want }, dispatcher: d}
}

// Run looks, and looks again after Every, until ctx ends. A look that fails does
// not end it: see Findings.
func (w *WebhookWatch) Run(ctx context.Context) error {
	if w.Every <= 0 {
		return errors.New("asaas: WebhookWatch: Every is not positive: set how often to look")
	}
	for {
		_, _ = w.Look(ctx) // Findings has both
		if err := w.client.wait(ctx, w.Every); err != nil {
			return err
		}
	}
}

// Look asks Asaas now, and returns the differences that lose events. An error is
// that of [PlanWebhook].
func (w *WebhookWatch) Look(ctx context.Context) ([]WebhookDifference, error) {
	p, err := PlanWebhook(ctx, w.client, w.want(), w.dispatcher)
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
func (w *WebhookWatch) SourceName() string { return definition.Source }

// Problems asks Asaas now, and returns a line for each thing that keeps events away, and
// how to repair them. They have no secret. Package doctor calls it.
func (w *WebhookWatch) Problems(ctx context.Context) (problems []string, advice string, err error) {
	lost, err := w.Look(ctx)
	for _, d := range lost {
		problems = append(problems, d.Text)
	}
	return problems, "see asaas-queue plan; asaas-queue apply repairs all that Asaas's API can", err
}

// Examine says how the webhook is, from Findings: the check "webhook" of package
// health. It makes no request.
func (w *WebhookWatch) Examine(context.Context, idem.Limits) []idem.Check {
	c := idem.Check{Source: definition.Source, Name: "webhook"}
	var says []string
	says, c.Healthy = w.Findings()
	c.Says = strings.Join(says, "; ")
	if c.Says == "" {
		c.Says = "as far as Asaas says, it is enabled, and subscribed to all that the application handles"
	}
	if !c.Healthy {
		c.Says += ": see asaas-queue plan"
	}
	return []idem.Check{c}
}

func (w *WebhookWatch) note(lost []WebhookDifference, err error) {
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
func (w *WebhookWatch) Findings() (says []string, sound bool) {
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
	_, isCall := errors.AsType[*APIError](s.err)
	failing := time.Since(s.failing)
	if isCall {
		says = append(says, fmt.Sprintf("the webhook could not be looked at for %s: %v", failing.Round(time.Second), s.err))
		return says, sound && failing < unknownAfter
	}
	return append(says, s.err.Error()), false
}

// annotate takes a list of all webhooks for a look, and adds its findings to their
// queues.
func (w *WebhookWatch) annotate(queues []gauge.Queue, all []*Webhook) []gauge.Queue {
	p, err := planFor(w.client, all, w.want(), w.dispatcher)
	if err != nil {
		w.note(nil, fmt.Errorf("asaas: WebhookWatch: %w", err))
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
		if slices.ContainsFunc(found, func(f *Webhook) bool { return f.ID == queues[n].ID }) {
			queues[n].Problems = problems
		}
	}
	return queues
}

// missing stands for the queue of a webhook that does not exist.
func (w *WebhookWatch) missing(problems ...string) gauge.Queue {
	return gauge.Queue{Name: w.want().Name, URL: placeOf(w.want().URL), Problems: problems}
}
