package queue

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// reconciling are the options of reconcile.
type reconciling struct {
	since, until time.Time
	calls        int
	resumeAt     *asaas.ReconcileCursor
}

func (o *reconciling) add(flags *flag.FlagSet) {
	moment := func(into *time.Time) func(string) error {
		return func(text string) (err error) {
			if *into, err = asaas.DateTime(text).Time(); err != nil {
				return errors.New("it is no time such as 2026-11-20T10:00:00-03:00")
			}
			return nil
		}
	}
	flags.Func("since", "the `TIME` before which every event is known to have arrived, as 2026-11-20T10:00:00-03:00", moment(&o.since))
	flags.Func("until", "the `TIME` at which the gap ends; now by default", moment(&o.until))
	flags.IntVar(&o.calls, "calls", 1000, "how many calls of the API to make at most, of 25,000 in 12 hours")
	flags.Func("resume-at", "the `CURSOR` that a run printed which came not to its end, in single quotes", func(text string) error {
		o.resumeAt = new(asaas.ReconcileCursor)
		if json.Unmarshal([]byte(text), o.resumeAt) != nil {
			return errors.New("it is no cursor: copy it whole, in single quotes")
		}
		return nil
	})
}

// reconcileStep is a progress as JSON.
type reconcileStep struct {
	ID         string                `json:"id"`
	Step       asaas.ReconcileStep   `json:"step"`
	Difference *asaas.Difference     `json:"difference,omitempty"`
	Counts     asaas.ReconcileCounts `json:"counts"`
	Cursor     asaas.ReconcileCursor `json:"cursor"`
	// Until the next call may be made; null if Asaas does not say.
	SecondsToWait *int64 `json:"secondsToWait,omitempty"`
}

// reconcile reports the charges of which an event never came.
func (p *program) reconcile(ctx context.Context) error {
	if p.since.IsZero() && p.resumeAt == nil {
		return errors.New("--since is not given: give the time before which every event is known to have arrived")
	}
	store, end, err := p.store(ctx)
	if err != nil {
		return err
	}
	defer end()
	events, ok := store.(asaas.ArrivalStore)
	if !ok {
		return errors.New("DATABASE_URL is not set: set it to the application's database, which has the events that came")
	}
	settings := p.Charges
	settings.WebhookID, settings.Events, settings.Resume = p.id, events, p.resumeAt
	settings.Since, settings.Until, settings.Calls = p.since, p.until, p.calls
	found := false
	for progress, err := range asaas.Reconcile(ctx, p.client, settings) {
		if err != nil {
			return err
		}
		if err := p.tellReconcile(progress); err != nil {
			return err
		}
		found = found || progress.Step != asaas.ReconcileCompared && progress.Step != asaas.ReconcileDone
	}
	if found { // or it did not come to its end
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
	return p.advise("reconcile " + p.id + " --resume-at '" + string(cursor) + "'")
}
