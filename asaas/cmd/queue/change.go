package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// change does a command that may change something.
func (p *program) change(ctx context.Context) error {
	if err := p.attended(); err != nil {
		return err
	}
	switch {
	case p.replay && p.Events == nil:
		return command.Usage("nothing was changed: -replay needs the application's handlers, which this program does not have: " +
			"ask the application's developers for its own replay, or for this command built with the handlers")
	case p.verb.name == "recover":
		return p.recover(ctx)
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	switch needed, err := p.isNeeded(w); {
	case err != nil:
		return err
	case !needed:
		return p.owed(ctx)
	}
	if err := p.confirm(ctx, w); err != nil {
		return err
	}
	if err := p.remedy(ctx, w); err != nil {
		return err
	}
	return p.owed(ctx)
}

// remedy makes the one change.
func (p *program) remedy(ctx context.Context, w *asaas.Webhook) error {
	do, done, what := p.client.RemoveBackoff, asaas.RecoveryPenaltyRemoved, "the penalty was removed"
	if p.verb.name == "resume" {
		do, done, what = p.client.Resume, asaas.RecoveryResumed, "the queue was resumed"
	}
	if err := changing(what, func() error { return do(ctx, p.id) }); err != nil {
		return err
	}
	if err := p.printStep(asaas.RecoveryProgress{Step: done, PenalizedRequests: penalized(w)}); err != nil {
		return err
	}
	next := "look with status whether the failures fall within some minutes"
	if p.verb.name == "resume" {
		next = command.Text("look with status whether the failures fall within some minutes; if they do not: remove-penalty %s", p.id)
	}
	return p.advise(next)
}

// remedies are the verbs that start a queue again, by its state.
var remedies = map[state]string{penalizedState: "remove-penalty", stopped: "resume"}

// errDisabled is the error of a webhook that is to be enabled first.
func errDisabled(id string) error {
	return fmt.Errorf("%w: nothing was changed: the webhook is disabled: Asaas makes no events for it, and those of this time never come: "+
		"asaas-queue enable %s, and run this again for what waited before", errNotRecovered, id)
}

// isNeeded returns true if the verb does anything for a webhook.
func (p *program) isNeeded(w *asaas.Webhook) (bool, error) {
	s := stateOf(w)
	switch {
	case !w.Enabled.Or(true):
		return false, errDisabled(p.id)
	case remedies[s] == p.verb.name, s == unknown, p.force:
		return true, nil
	case s.isHeldUp():
		return false, fmt.Errorf("%w: nothing was changed: the queue of %s is %s: use %s, or recover", errNotRecovered, p.id, s, remedies[s])
	}
	if err := p.printStep(asaas.RecoveryProgress{Step: asaas.RecoveryNotNeeded}); err != nil {
		return false, err
	}
	return false, p.advise(command.Text("if events do not come all the same: remove-penalty -force %s removes a penalty that Asaas's count does not show", p.id))
}

// recover asks once it is known that there is something to recover, and before anything is sent to
// the receiver.
func (p *program) recover(ctx context.Context) error {
	token := strings.TrimSpace(p.getenv("ASAAS_WEBHOOK_TOKEN"))
	if token == "" {
		return command.Usage("nothing was changed: ASAAS_WEBHOOK_TOKEN is not set: set it in the environment to the token that the application verifies with")
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	heldUp := remedies[stateOf(w)] != ""
	if w.Enabled.Or(true) && (heldUp || p.replay) {
		if err := p.confirm(ctx, w); err != nil {
			return err
		}
	}
	events, end, err := p.failed(ctx, heldUp)
	if err != nil {
		return err
	}
	defer end()
	p.client.Try = p.tries
	for progress, err := range asaas.Recover(ctx, p.client, p.id, token, events...) {
		switch {
		case err != nil:
			return unrecovered(err)
		case progress.Step == asaas.RecoveryOwed: // p.owed prints them, also without -replay
			continue
		}
		if err := p.printStep(progress); err != nil {
			return err
		}
	}
	return p.owed(ctx)
}

// failed returns the application's events for a recovery. Without -replay they are only listed, to
// name the oldest that failed.
func (p *program) failed(ctx context.Context, heldUp bool) (events []asaas.EventStore, end func(), err error) {
	switch {
	case p.replay:
		return []asaas.EventStore{p.Events}, func() {}, nil
	case !heldUp:
		return nil, func() {}, nil
	}
	stored, end, err := p.store(ctx)
	if err != nil || stored == nil {
		return nil, end, err
	}
	return []asaas.EventStore{listed{stored}}, end, nil
}

// listed are events that stay as they are.
type listed struct{ asaas.EventStore }

func (listed) Replay(context.Context, idem.Filter) (idem.Replayed, error) {
	return idem.Replayed{}, nil
}

// tries reports whether to try the handlers with the oldest event that failed: -try says so, or
// a person at the terminal.
func (p *program) tries(ctx context.Context, oldest idem.StoredEvent) bool {
	if p.try || p.yes {
		return p.try
	}
	fmt.Fprintln(p.complaints, command.Text("The oldest event that failed is %s %s of %s, %s.",
		terminal.Clean(oldest.Type), terminal.Clean(oldest.ID), terminal.Clean(oldest.Key), oldest.State))
	return p.command.Confirm(ctx, "Try the handlers with it? What they write is rolled back; their HTTP requests and e-mails are real, unless they ask idem.IsDryRun.") == nil
}

// unrecovered adds errNotRecovered, unless it was Asaas that did not answer.
func unrecovered(err error) error {
	if _, isCall := errors.AsType[*asaas.APIError](err); isCall {
		return err
	}
	return fmt.Errorf("%w: %w", errNotRecovered, err)
}

// step is a progress as JSON.
type step struct {
	ID        string             `json:"id"`
	Step      asaas.RecoveryStep `json:"step"`
	Penalized int                `json:"penalized_requests"`
	Misses    []string           `json:"misses,omitempty"`
	Oldest    *event             `json:"oldest,omitempty"` // that failed
	Tried     *bool              `json:"tried,omitempty"`  // whether the handlers passed with it
	Replayed  *replayed          `json:"replayed,omitempty"`
}

type event struct {
	Scope string `json:"scope"`
	ID    string `json:"id"`
	Type  string `json:"type"`
	Key   string `json:"key"`
}

type replayed struct {
	Done      int `json:"done"`
	Failed    int `json:"failed"`
	Unhandled int `json:"unhandled"`

	Overtaken []overtaken `json:"overtaken,omitempty"`
}

// overtaken is an event that was replayed behind a later one of its entity.
type overtaken struct {
	Scope  string `json:"scope"`
	ID     string `json:"id"`
	Type   string `json:"type"`
	By     string `json:"by"`
	ByType string `json:"by_type"`
}

func replayedOf(n idem.Replayed) *replayed {
	r := &replayed{Done: n.Done, Failed: n.Failed, Unhandled: n.Unhandled}
	for _, o := range n.Overtaken {
		r.Overtaken = append(r.Overtaken, overtaken{o.Event.Scope, o.Event.ID, o.Event.Type, o.By.ID, o.By.Type})
	}
	return r
}

// printStep prints a step.
func (p *program) printStep(progress asaas.RecoveryProgress) error {
	if !p.json {
		_, err := fmt.Fprintln(p.out, progress)
		return err
	}
	s := step{ID: p.id, Step: progress.Step, Penalized: progress.PenalizedRequests, Misses: progress.Misses}
	switch o := progress.Oldest; {
	case progress.Step == asaas.RecoveryReplayed:
		s.Replayed = replayedOf(progress.Replayed)
	case progress.Step == asaas.RecoveryProbed && o.ID != "":
		s.Oldest = &event{o.Scope, o.ID, o.Type, o.Key}
		fallthrough
	case progress.Step == asaas.RecoveryProbed:
		s.Tried = &progress.Tried
	}
	return p.printLine(s)
}

// attended returns an error where a change cannot be confirmed.
func (p *program) attended() error {
	if p.yes {
		return nil
	}
	return p.command.Attended()
}

// questions are asked after the state is shown, by the verb.
var questions = map[string]string{
	"remove-penalty": "Remove its penalty, without trying the receiver?",
	"rotate":         "Give it the new token, if the receiver accepts that?",
	"enable":         "Have Asaas make events for it again?",
	"resume":         "Start its queue again, without trying the receiver?",
	"recover":        "Send a canary to the receiver, and start the queue again if it arrives?",
}

func (p *program) confirm(ctx context.Context, w *asaas.Webhook) error {
	if p.yes {
		return nil
	}
	r := newRow(w, p.lastEvent)
	question := questions[p.verb.name]
	if p.replay {
		question = "Send a canary to the receiver, and if it arrives, start the queue again and replay what is owed?"
	}
	fmt.Fprintln(p.complaints, command.Text("%s at %s: %s, Asaas counts %s failures.", terminal.Clean(r.Name), terminal.Clean(r.URL), p.words(r), strconv.Itoa(r.Penalized)))
	return p.command.Confirm(ctx, command.Text(question))
}

// rotate gives the webhook the new token, once the application accepts it.
func (p *program) rotate(ctx context.Context) error {
	token := strings.TrimSpace(p.getenv("ASAAS_NEW_WEBHOOK_TOKEN"))
	if token == "" {
		return command.Usage("nothing was changed: ASAAS_NEW_WEBHOOK_TOKEN is not set: set it in the environment to the token that the application accepts beside the old one")
	}
	if err := p.attended(); err != nil {
		return err
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := p.confirm(ctx, w); err != nil {
		return err
	}
	if err := webhook.RotateToken(ctx, p.client, p.id, token); err != nil {
		return err
	}
	return p.advise("the webhook has the new token; once the queue is empty and deliveries have come with it, have the application accept the new one alone")
}
