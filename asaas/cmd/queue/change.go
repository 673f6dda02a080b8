package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Why a change was not confirmed.
var (
	errDeclined = errors.New("nothing was changed: the answer was not y")
	errNobody   = errors.New("nothing was changed: nobody is at a terminal to confirm the change: give --yes")
)

// change does a command that may change something.
func (p *program) change(ctx context.Context) error {
	switch {
	case p.replay && p.Events == nil:
		return errors.New("nothing was changed: --replay needs the application's handlers, which this program does not have: " +
			"ask the application's developers for its own replay, or for this command built with the handlers")
	case !p.yes && !p.terminal:
		return errNobody
	case p.command == "recover":
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
	if p.command == "resume" {
		do, done, what = p.client.Resume, asaas.RecoveryResumed, "the queue was resumed"
	}
	if err := changing(what, func() error { return do(ctx, p.id) }); err != nil {
		return err
	}
	if err := p.tell(asaas.RecoveryProgress{Step: done, PenalizedRequests: penalized(w)}); err != nil {
		return err
	}
	next := "look with status whether the failures fall within some minutes"
	if p.command == "resume" {
		next += "; if they do not: remove-penalty " + p.id
	}
	return p.advise(next)
}

// advise tells what to do next.
func (p *program) advise(next string) error {
	if p.json {
		return p.printLine(advice{p.id, next})
	}
	_, err := fmt.Fprintln(p.out, "next:", next)
	return err
}

// advice is what to do next, as JSON.
type advice struct {
	ID   string `json:"id"`
	Next string `json:"next"`
}

// remedies are what starts a queue again, by its state.
var remedies = map[state]string{penalizedState: "remove-penalty", stopped: "resume"}

var errDisabled = fmt.Errorf("%w: nothing was changed: the webhook is disabled: Asaas makes no events for it, and those of this time never come: "+
	"enable it at Asaas, and run this again for what waited before", errNotRecovered)

// isNeeded tells whether the command does anything for a webhook.
func (p *program) isNeeded(w *asaas.Webhook) (bool, error) {
	s := stateOf(w)
	switch {
	case !w.Enabled.Or(true):
		return false, errDisabled
	case remedies[s] == p.command, s == unknown, p.force:
		return true, nil
	case s.isHeldUp():
		return false, fmt.Errorf("%w: nothing was changed: the queue of %s is %s: use %s, or recover", errNotRecovered, p.id, s, remedies[s])
	}
	if err := p.tell(asaas.RecoveryProgress{Step: asaas.RecoveryNotNeeded}); err != nil {
		return false, err
	}
	return false, p.advise("if events do not come all the same: remove-penalty --force " + p.id + " removes a penalty that Asaas's count does not show")
}

// recover asks once it is known that there is something to recover, and before
// anything is sent to the receiver.
func (p *program) recover(ctx context.Context) error {
	token := p.getenv("ASAAS_WEBHOOK_TOKEN")
	if strings.TrimSpace(token) == "" {
		return errors.New("nothing was changed: ASAAS_WEBHOOK_TOKEN is not set: set it in the environment to the token that the application verifies with")
	}
	probe := func(ctx context.Context, w *asaas.Webhook) error {
		if err := p.confirm(ctx, w); err != nil {
			return err
		}
		return asaas.DryRunProbe(token)(ctx, w)
	}
	var events []asaas.EventStore
	if p.replay {
		events = append(events, p.Events)
	}
	for progress, err := range asaas.Recover(ctx, p.client, p.id, probe, events...) {
		switch {
		case err != nil:
			return unrecovered(err)
		case progress.Step == asaas.RecoveryOwed: // p.owed tells it, also without --replay
			continue
		}
		if err := p.tell(progress); err != nil {
			return err
		}
	}
	return p.owed(ctx)
}

// unrecovered tells a queue that is held up from an Asaas that does not answer.
func unrecovered(err error) error {
	if _, isCall := errors.AsType[*asaas.APIError](err); isCall {
		return err
	}
	for _, unconfirmed := range []error{errDeclined, errNobody} {
		if errors.Is(err, unconfirmed) {
			return unconfirmed // nothing was probed
		}
	}
	return fmt.Errorf("%w: %w", errNotRecovered, err)
}

// questions are what a person is asked, after the state.
var questions = map[string]string{
	"remove-penalty": "Remove its penalty, without trying the receiver?",
	"resume":         "Start its queue again, without trying the receiver?",
	"recover":        "Try the receiver with events that are rolled back (its HTTP requests are real, unless it asks idem.IsDryRun), and start the queue again if it is sound?",
}

func (p *program) confirm(ctx context.Context, w *asaas.Webhook) error {
	if p.yes {
		return nil
	}
	r := newRow(w, p.lastEvent)
	question := questions[p.command]
	if p.replay {
		question = "Try the receiver with events that are rolled back (its HTTP requests are real, unless it asks idem.IsDryRun), and if it is sound, start the queue again and replay what is owed?"
	}
	fmt.Fprintf(p.complaints, "%s at %s: %s, Asaas counts %d failures.\n", cell(r.Name), cell(r.URL), r.words(), r.Penalized)
	yes, err := terminal.Confirm(ctx, p.in, p.complaints, question)
	switch {
	case errors.Is(err, terminal.ErrNobody):
		return errNobody
	case err != nil:
		return fmt.Errorf("nothing was changed: %w", err)
	case !yes:
		return errDeclined
	}
	return nil
}

// step is a progress as JSON.
type step struct {
	ID        string             `json:"id"`
	Step      asaas.RecoveryStep `json:"step"`
	Penalized int                `json:"penalizedRequests"`
	Replayed  *replayed          `json:"replayed,omitempty"`
}

type replayed struct {
	Done      int `json:"done"`
	Failed    int `json:"failed"`
	Unhandled int `json:"unhandled"`
}

// tell prints a step.
func (p *program) tell(progress asaas.RecoveryProgress) error {
	if !p.json {
		_, err := fmt.Fprintln(p.out, progress)
		return err
	}
	s := step{ID: p.id, Step: progress.Step, Penalized: progress.PenalizedRequests}
	if progress.Step == asaas.RecoveryReplayed {
		s.Replayed = new(replayed(progress.Replayed))
	}
	return p.printLine(s)
}
