package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/internal/shown"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Watch looks at the application's webhook from time to time and reports
// faults that keep events away, which no delivery shows: the webhook is disabled (Asaas
// does that by itself to a queue that was stopped for 30 days), deleted, or stopped,
// a type that the application handles is not subscribed to, deliveries are in no
// order. Make it with [NewWatch], give it to idem.Serve, which runs it, and to
// health.New, which asks it.
//
// Several goroutines may use it at once. The exported fields are settings: change them
// before Run.
type Watch struct {
	// Every is the time between two looks. Each is one call of the API. Default: 5
	// minutes.
	Every time.Duration

	// Release, if not nil, has Run remove the penalty of the webhook's queue once the outage is over. Give it the inbox
	// that the webhook delivers to. After 40 minutes of downtime Asaas's next try may be an hour away, and is not, then.
	//
	// Run removes the penalty only, and never resumes a queue that is stopped: a person may have stopped it. It does so
	// if two looks, one after the other, find that Asaas counts failed deliveries, that no event has been stored for 5
	// minutes, and that this process has refused none since the last genuine one; at most once an hour, whichever
	// process it is. The audit trail has it. After a release that brings no event there is no other until one comes,
	// and if Asaas counts more failures the check "webhook" fails. Default: nil, a person runs asaas-queue recover.
	Release *idem.Inbox

	client     *asaas.Client
	want       func() Settings // a function, so that printing shows no token
	dispatcher *asaas.Dispatcher
	account    string // its name, of several; "" where there is one

	mu      sync.Mutex
	lost    []Difference // that the last look found which succeeded
	command string       // that repairs them; "" if none does
	err     error        // of the last look
	failing time.Time    // since when looks fail; zero if the last one succeeded

	release released // of the last look

	penalized value.Optional[asaas.Int] // failed deliveries, as Asaas counted them at the last look
	looked    time.Time                 // when that was
	more      time.Time                 // the last look that found more of them
	rose      time.Time                 // the look before that one
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
	held := false // at the look before: a program that has just begun may not be reached yet
	for {
		held = w.step(ctx, held)
		select {
		case <-time.After(w.Every):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// step looks, and removes the penalty of a queue that was held up at the look before, too. It reports whether it is now.
func (w *Watch) step(ctx context.Context, before bool) (held bool) {
	p, err := w.look(ctx)
	if err != nil || w.Release == nil { // Examine has the error
		return false
	}
	return w.relieve(ctx, p, before)
}

// look asks Asaas now for the differences that lose events.
func (w *Watch) look(ctx context.Context) (*Plan, error) {
	p, err := NewPlan(ctx, w.client, w.want(), w.dispatcher)
	if err == nil || ctx.Err() == nil { // a stop says nothing of Asaas
		w.note(p, err)
	}
	return p, err
}

// note keeps the result of a look.
func (w *Watch) note(p *Plan, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	switch {
	case err == nil:
		w.lost, w.command, w.failing = p.losses(), p.command(w.account), time.Time{}
		w.countFailed(p.Webhook)
	case w.failing.IsZero():
		w.failing = time.Now()
	}
}

// countFailed compares Asaas's count of failed deliveries with that of the look before. It may be a history that never
// falls, so a count by itself says nothing.
func (w *Watch) countFailed(at *asaas.Webhook) {
	if at == nil {
		return
	}
	if before, ok := w.penalized.Get(); ok && at.PenalizedRequestsCount.Or(0) > before {
		w.rose, w.more = w.looked, time.Now()
	}
	w.penalized, w.looked = at.PenalizedRequestsCount, time.Now()
}

// Failed returns the time since which Asaas has counted failed deliveries, by its looks: that of the look before the
// last one that found more of them. It is zero if none did. Package health asks it: if the application has got no
// genuine delivery since then, and has refused one, the token was changed at one side.
func (w *Watch) Failed() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rose
}

// SourceName returns "asaas", the name of its events' source.
func (w *Watch) SourceName() string { return source }

// Problems asks Asaas now, and returns a line for each thing that keeps events away, and the
// command that repairs them. They have no secret. Package doctor calls it.
func (w *Watch) Problems(ctx context.Context) (problems []string, command string, err error) {
	_, err = w.look(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		return nil, "", err
	}
	for _, d := range w.lost {
		problems = append(problems, d.Text)
	}
	return problems, w.command, nil
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
	if len(w.lost) > 0 {
		c.Command = w.command
	}
	if text, sound := w.release.says(w.more); text != "" {
		says, c.Healthy, c.Warning = append(says, text), c.Healthy && sound, c.Healthy && sound
		if !sound {
			c.Command = cmp.Or(c.Command, w.release.command)
		}
	}
	c.Says = strings.Join(says, "; ")
	if c.Says == "" {
		c.Says = "as far as Asaas says, it is enabled, and subscribed to all that the application handles"
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
	w.note(p, nil)
	for _, d := range p.losses() {
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

// command returns what a person types to have the differences repaired that lose events: "" if nothing is lost, or if
// a difference is none that asaas-queue can repair. account is its name in the list of ASAAS_ACCOUNTS, "" for none.
func (p *Plan) command(account string) string {
	lost := p.losses()
	repaired := func(fields ...string) bool {
		return !slices.ContainsFunc(lost, func(d Difference) bool { return !d.Repairable || !slices.Contains(fields, d.Field) })
	}
	var words []string
	switch {
	case !slices.ContainsFunc(lost, func(d Difference) bool { return d.Repairable || d.Field == "authToken" }):
		return ""
	case p.Webhook != nil && repaired("interrupted"):
		words = []string{"recover", p.shown(p.Webhook.ID)}
	case p.Webhook != nil && repaired("enabled", "interrupted"): // which says to recover it
		words = []string{"enable", p.shown(p.Webhook.ID)}
	default:
		words = p.applyWords()
	}
	return p.asaasQueue(account, words...)
}

// asaasQueue returns a command of asaas-queue for the account.
func (p *Plan) asaasQueue(account string, words ...string) string {
	if account != "" {
		words = append(words, "-account", terminal.Quoted(account))
	}
	if p.client.Environment() == asaas.Sandbox {
		words = append(words, "-sandbox")
	}
	return "asaas-queue " + strings.Join(words, " ")
}

// applyWords are those of asaas-queue apply. The word URL stands for one with parts that may be a secret.
func (p *Plan) applyWords() []string {
	want, address := p.want(), terminal.Quoted(p.want().URL)
	if shown.Place(want.URL) != want.URL {
		address = "URL"
	}
	words := []string{"apply", "-name", terminal.Quoted(want.Name), "-url", address, "-handled", strings.ReplaceAll(joined(p.types), ", ", ",")}
	if p.Webhook == nil {
		words = append(words, "-email", "ADDRESS")
	}
	if want.NoPixAutomatic {
		words = append(words, "-no-pix-automatic")
	}
	return words
}
