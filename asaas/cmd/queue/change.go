package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// toChange returns the webhook that is to be changed, if somebody can confirm the change.
func (p *program) toChange(ctx context.Context) (*asaas.Webhook, error) {
	if err := p.attended(); err != nil {
		return nil, err
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	return w, nil
}

// attended returns an error where a change cannot be confirmed.
func (p *program) attended() error {
	if p.yes {
		return nil
	}
	return p.command.Attended()
}

// confirm shows the webhook's state, and asks.
func (p *program) confirm(ctx context.Context, w *asaas.Webhook, question string) error {
	if p.yes {
		return nil
	}
	r := newRow(w, p.lastEvent)
	fmt.Fprintf(p.complaints, "%s at %s: %s, Asaas counts %d failures.\n", terminal.Clean(r.Name), terminal.Clean(r.URL), r.words(), r.Penalized)
	return p.command.Confirm(ctx, question)
}

// fate says in the error of a change whether it may have been made.
func fate(did string, err error) error {
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Outcome == asaas.CallUnknown {
		return fmt.Errorf("it is not known whether %s: %w", did, err)
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

// remedy starts a queue again that is held up.
type remedy struct {
	verb, question, did string
	step                asaas.RecoveryStep
	do                  func(*asaas.Client, context.Context, string) error
}

var remedies = map[state]remedy{
	penalizedState: {
		"remove-penalty", "Remove its penalty, without trying the receiver?", "the penalty was removed",
		asaas.RecoveryPenaltyRemoved, (*asaas.Client).RemoveBackoff,
	},
	stopped: {
		"resume", "Start its queue again, without trying the receiver?", "the queue was resumed",
		asaas.RecoveryResumed, (*asaas.Client).Resume,
	},
}

func (p *program) removePenalty(ctx context.Context) error { return p.remedy(ctx, penalizedState) }

func (p *program) resume(ctx context.Context) error { return p.remedy(ctx, stopped) }

// remedy does what helps against a state, unless another remedy is the right one.
func (p *program) remedy(ctx context.Context, against state) error {
	w, err := p.toChange(ctx)
	if err != nil {
		return err
	}
	is, r := stateOf(w), remedies[against]
	switch other, isHeldUp := remedies[is]; {
	case !w.Enabled.Or(true):
		return p.disabled()
	case isHeldUp && is != against:
		return fmt.Errorf("%w: nothing was changed: the queue of %s is %s: use %s, or recover", errNotRecovered, p.id, is, other.verb)
	}
	if err := p.confirm(ctx, w, r.question); err != nil {
		return err
	}
	if err := r.do(p.client, ctx, p.id); err != nil {
		return fate(r.did, err)
	}
	p.tell(p.step(asaas.RecoveryProgress{Step: r.step, PenalizedRequests: penalized(w)}))
	next := "look with status whether the failures fall within some minutes"
	if against == stopped {
		next += "; if they do not: " + p.typed("remove-penalty", p.id)
	}
	p.tell(advice{p.id, next})
	return p.owed(ctx)
}

// disabled is the error of a webhook that is to be enabled first.
func (p *program) disabled() error {
	return fmt.Errorf("%w: nothing was changed: the webhook is disabled: Asaas makes no events for it, and those of this time never come: "+
		"%s, and run this again for what waited before", errNotRecovered, p.typed("enable", p.id))
}

// recover asks once it is known that there is something to recover, and before anything is sent to
// the receiver.
func (p *program) recover(ctx context.Context) error {
	token := p.token()
	switch {
	case p.replay && p.Events == nil:
		return command.Usage("nothing was changed: -replay needs the application's handlers, which this program does not have: " +
			"ask the application's developers for its own replay, or for this command built with the handlers")
	case token == "":
		return command.Usage("nothing was changed: %s is not set: set it in the environment to the token that the application verifies with", p.listed.tokenVariable())
	}
	if p.id == everyID {
		return p.recoverAll(ctx)
	}
	w, err := p.toChange(ctx)
	if err != nil {
		return err
	}
	if !w.Enabled.Or(true) {
		return p.disabled()
	}
	_, isHeldUp := remedies[stateOf(w)]
	question := "Send a canary to the receiver, and start the queue again if it arrives?"
	if p.replay {
		question = "Send a canary to the receiver, and if it arrives, start the queue again and replay what is owed?"
	}
	if isHeldUp || p.replay {
		if err := p.confirm(ctx, w, question); err != nil {
			return err
		}
	}
	events, end, err := p.failed(ctx, isHeldUp)
	if err != nil {
		return err
	}
	defer end()
	p.client.Try = p.tries
	for progress, err := range asaas.Recover(ctx, p.client, p.id, token, events) {
		if _, isCall := errors.AsType[*asaas.APIError](err); isCall {
			return err
		} else if err != nil {
			return fmt.Errorf("%w: %w", errNotRecovered, err)
		}
		if progress.Step != asaas.RecoveryOwed { // p.owed prints them, also without -replay
			p.tell(p.step(progress))
		}
	}
	return p.owed(ctx)
}

// failed returns the application's events for a recovery. Without -replay they are only listed, to
// name the oldest that failed.
func (p *program) failed(ctx context.Context, isHeldUp bool) (events asaas.EventStore, end func(), err error) {
	switch {
	case p.replay:
		return p.Events, func() {}, nil
	case !isHeldUp:
		return nil, func() {}, nil
	}
	stored, end, err := p.store(ctx)
	if err != nil || stored == nil {
		return nil, end, err
	}
	return onlyListed{stored}, end, nil
}

// onlyListed are events that stay as they are.
type onlyListed struct{ asaas.EventStore }

func (onlyListed) Replay(context.Context, idem.Filter) (idem.Replayed, error) {
	return idem.Replayed{}, nil
}

// tries reports whether to try the handlers with the oldest event that failed: -try says so, or
// a person at the terminal.
func (p *program) tries(ctx context.Context, oldest idem.StoredEvent) bool {
	if p.try || p.yes {
		return p.try
	}
	fmt.Fprintf(p.complaints, "The oldest event that failed is %s %s of %s, %s.\n",
		terminal.Clean(oldest.Type), terminal.Clean(oldest.ID), terminal.Clean(oldest.Key), oldest.State)
	return p.command.Confirm(ctx, "Try the handlers with it? What they write is rolled back; their HTTP requests and e-mails are real, unless they ask idem.IsDryRun.") == nil
}

// step is a progress.
type step struct {
	ID        string             `json:"id"`
	Step      asaas.RecoveryStep `json:"step"`
	Penalized int                `json:"penalized_requests"`
	Says      string             `json:"says"`
}

func (p *program) step(progress asaas.RecoveryProgress) step {
	return step{p.id, progress.Step, progress.PenalizedRequests, progress.String()}
}

func (s step) String() string { return s.Says }

// enable has Asaas make events for a webhook again.
func (p *program) enable(ctx context.Context) error {
	w, err := p.toChange(ctx)
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound {
		return fmt.Errorf("%w: if it was deleted, make it again: %s; status lists the webhooks that are left", err, p.typedApply())
	}
	if err != nil {
		return err
	}
	if !w.Enabled.Or(true) {
		if err := p.confirm(ctx, w, "Have Asaas make events for it again?"); err != nil {
			return err
		}
		if w, err = p.client.UpdateWebhook(ctx, p.id, asaas.WebhookUpdate{Enabled: value.Of(true)}); err != nil {
			return fate("the webhook was enabled", err)
		}
	}
	p.tell(step{p.id, "enabled", penalized(w), "the webhook is enabled"})
	next := fmt.Sprintf("what happened while it was disabled never comes as events: %s prints it, and charges.Reconcile books it", p.typed("reconcile", "-since TIME"))
	if is := stateOf(w); remedies[is].verb != "" {
		next = fmt.Sprintf("its queue is %s: %s; then %s", is, p.typed("recover", p.id), next)
	}
	p.tell(advice{p.id, next})
	return p.owed(ctx)
}

// typedApply returns the command that makes the application's webhook, with a word to fill in for each thing that
// neither this program nor its environment knows.
func (p *program) typedApply() string {
	var flags []string
	for _, f := range []struct{ flag, known string }{
		{"-name NAME", p.settings().Name},
		{"-url URL", p.settings().URL},
		{"-email ADDRESS", p.settings().Email},
	} {
		if f.known == "" {
			flags = append(flags, f.flag)
		}
	}
	what := ""
	if p.Dispatcher == nil && len(p.settings().Types) == 0 {
		flags, what = append(flags, "-handled FILE"), ", where the file has a line for each event type that has a handler"
	}
	if cmp.Or(p.token(), p.settings().Token) == "" {
		what += ", with " + p.listed.tokenVariable() + " set to its token"
	}
	return p.typed("apply", flags...) + what
}

// rotate gives the webhook the new token, once the application accepts it.
func (p *program) rotate(ctx context.Context) error {
	token := strings.TrimSpace(p.getenv("ASAAS_NEW_WEBHOOK_TOKEN"))
	if token == "" {
		return command.Usage("nothing was changed: ASAAS_NEW_WEBHOOK_TOKEN is not set: set it in the environment to the token that the application accepts beside the old one")
	}
	w, err := p.toChange(ctx)
	if err != nil {
		return err
	}
	if err := p.confirm(ctx, w, "Give it the new token, if the receiver accepts that?"); err != nil {
		return err
	}
	if err := webhook.RotateToken(ctx, p.client, p.id, token); err != nil {
		return err
	}
	p.tell(advice{p.id, "the webhook has the new token; once the queue is empty and deliveries have come with it, have the application accept the new one alone"})
	return nil
}
