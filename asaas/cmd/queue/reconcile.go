package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
)

// reconcileStep is a progress as JSON.
type reconcileStep struct {
	ID         string                `json:"id"`
	Step       asaas.ReconcileStep   `json:"step"`
	Difference *asaas.Difference     `json:"difference,omitempty"`
	Counts     asaas.ReconcileCounts `json:"counts"`
	Cursor     asaas.ReconcileCursor `json:"cursor"`
	// Until the next call may be made; null if Asaas does not say.
	SecondsToWait *int64 `json:"seconds_to_wait,omitempty"`
}

// reconcile reports the charges of which an event never came.
func (p *program) reconcile(ctx context.Context) error {
	if p.since.IsZero() && p.resumeAt == nil {
		return command.Usage("-since is not given: give the time before which every event is known to have arrived")
	}
	store, end, err := p.store(ctx)
	if err != nil {
		return err
	}
	defer end()
	events, ok := store.(asaas.ArrivalStore)
	if !ok {
		return command.Usage("DATABASE_URL is not set: set it to the application's database, which has the events that came")
	}
	settings := p.Charges
	settings.WebhookID, settings.Events, settings.Resume = p.id, events, p.resumeAt
	settings.Since, settings.Until, settings.Calls = p.since, p.until, p.calls
	found, step := false, asaas.ReconcileStep("")
	for progress, err := range asaas.Reconcile(ctx, p.client, settings) {
		if err != nil {
			return err
		}
		if err := p.tellReconcile(progress); err != nil {
			return err
		}
		step = progress.Step
		found = found || step != asaas.ReconcileCompared && step != asaas.ReconcileDone
	}
	switch {
	case step == asaas.ReconcilePaused:
		return command.Said(command.Failed)
	case found:
		return errAttention
	}
	return nil
}

func (p *program) tellReconcile(progress asaas.ReconcileProgress) error {
	if p.json {
		s := reconcileStep{ID: p.id, Step: progress.Step, Difference: progress.Difference, Counts: progress.Counts, Cursor: progress.Cursor}
		if progress.Again > 0 {
			s.SecondsToWait = new(int64(progress.Again / time.Second))
		}
		return p.printLine(s)
	}
	if _, err := fmt.Fprintln(p.out, progress); err != nil || progress.Step != asaas.ReconcilePaused {
		return err
	}
	cursor, err := json.Marshal(progress.Cursor)
	if err != nil {
		return err
	}
	return p.advise("reconcile " + p.id + " -resume-at '" + string(cursor) + "'")
}
