package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/asaas"
)

// Why a change was not confirmed.
var (
	errDeclined = errors.New("nothing was changed: the answer was not y")
	errNobody   = errors.New("nobody is at a terminal to confirm the change: give --yes")
)

// change does a command that may change something.
func (p *program) change(ctx context.Context) error {
	if !p.yes && !p.terminal {
		return errNobody
	}
	if p.command == "recover" {
		return p.recover(ctx)
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return err
	}
	if needed, err := p.isNeeded(stateOf(w)); !needed || err != nil {
		return err
	}
	if err := p.confirm(w); err != nil {
		return err
	}
	do, done := p.client.RemoveBackoff, asaas.RecoveryPenaltyRemoved
	if p.command == "resume" {
		do, done = p.client.Resume, asaas.RecoveryResumed
	}
	if err := do(ctx, p.id); err != nil {
		return err
	}
	return p.tell(asaas.RecoveryProgress{Step: done, PenalizedRequests: penalized(w)})
}

// remedies are what starts a queue again, by its state.
var remedies = map[state]string{penalised: "remove-penalty", stopped: "resume"}

// isNeeded tells whether the command does anything for a queue.
func (p *program) isNeeded(s state) (bool, error) {
	switch {
	case remedies[s] == p.command, s == unknown:
		return true, nil
	case s.isHeldUp():
		return false, fmt.Errorf("%w: the queue of %s is %s: use %s, or recover", errNotRecovered, p.id, s, remedies[s])
	}
	return false, p.tell(asaas.RecoveryProgress{Step: asaas.RecoveryNotNeeded})
}

// recover asks once it is known that there is something to recover, and before
// anything is sent to the receiver.
func (p *program) recover(ctx context.Context) error {
	token := p.getenv("ASAAS_WEBHOOK_TOKEN")
	if strings.TrimSpace(token) == "" {
		return errors.New("ASAAS_WEBHOOK_TOKEN is not set: set it in the environment to the token that the application verifies with")
	}
	probe := func(ctx context.Context, w *asaas.Webhook) error {
		if err := p.confirm(w); err != nil {
			return err
		}
		return asaas.DryRunProbe(token)(ctx, w)
	}
	for progress, err := range asaas.Recover(ctx, p.client, p.id, probe) {
		if err == nil {
			err = p.tell(progress)
		}
		if err != nil {
			return unrecovered(err)
		}
	}
	return nil
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
	"recover":        "Try the receiver with an event that is rolled back, and start the queue again if it is sound?",
}

func (p *program) confirm(w *asaas.Webhook) error {
	if p.yes {
		return nil
	}
	r := newRow(w, p.lastEvent)
	fmt.Fprintf(p.complaints, "%s at %s: %s, Asaas counts %d failures.\n%s [y/N] ", cell(r.Name), cell(r.URL), r.words(), r.Penalized, questions[p.command])
	answer, err := bufio.NewReader(p.in).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(p.complaints)
		return errNobody
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}

// step is a progress as JSON.
type step struct {
	ID        string             `json:"id"`
	Step      asaas.RecoveryStep `json:"step"`
	Penalized int                `json:"penalizedRequests"`
}

// tell prints a step.
func (p *program) tell(progress asaas.RecoveryProgress) error {
	if p.json {
		return p.printLine(step{p.id, progress.Step, progress.PenalizedRequests})
	}
	_, err := fmt.Fprintln(p.out, progress)
	return err
}
