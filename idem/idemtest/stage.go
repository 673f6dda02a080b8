package idemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/paghooks/paghooks/idem"
)

// stagesOf are the stages of the n-th delivery.
func (m *matrix) stagesOf(n int, r *http.Request) []stage {
	m.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.Fatalf("idemtest: a delivery's body cannot be read: %v", err)
	}
	delivery := stage{fmt.Sprintf("delivery %d", n), func(run *trial) (done bool, err error) {
		again := r.Clone(run.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		return run.deliver(again)
	}}
	if !m.byWorkers {
		return []stage{delivery}
	}
	return []stage{delivery, {fmt.Sprintf("work on delivery %d", n), (*trial).work}}
}

// deliver sends a request once. It is done when that is answered with 200.
func (run *trial) deliver(r *http.Request) (done bool, err error) {
	var seen idem.Observation
	w := httptest.NewRecorder()
	run.receiver(func(_ context.Context, o idem.Observation) { seen = o }).ServeHTTP(w, r)
	done = w.Code == http.StatusOK
	if !done || seen.Err != nil {
		err = fmt.Errorf("answered %d, %s: %v", w.Code, seen.Outcome, seen.Err)
	}
	return done, err
}

// receiver returns the application's receiver of deliveries.
func (run *trial) receiver(observe func(context.Context, idem.Observation)) http.Handler {
	if run.byWorkers {
		return run.inbox(observe)
	}
	p := idem.NewProcessor(run.pool, run.app)
	p.Logger, p.Observe = nil, observe
	return p
}

// inbox is an inbox that sends the same messages in every run: one worker, which
// is not woken.
func (run *trial) inbox(observe func(context.Context, idem.Observation)) *idem.Inbox {
	i := idem.NewInbox(run.pool, run.app)
	i.Logger, i.Observe = nil, observe
	i.Workers, i.PollOnly = 1, true
	return i
}

// timePasses ends all waiting. No workers are left: a claim that they have left behind is
// that of a process that died.
const timePasses = `
delete from idem_workers;
update idem_payloads set due_at = now() where due_at > now()`

// work has a worker make one attempt. It is done when no event is pending.
func (run *trial) work() (done bool, err error) {
	run.Helper()
	if run.pending() == nil {
		return true, nil // the delivery was a duplicate
	}
	if _, err := run.direct.Exec(run.Context(), timePasses); err != nil {
		run.Fatal(err)
	}
	ctx, stop := context.WithCancel(run.Context())
	defer stop()
	var seen idem.Observation
	drained := run.inbox(func(_ context.Context, o idem.Observation) {
		seen = o
		run.proxy.Disarm() // it is chance whether the worker looks for another event before it stops
		stop()             // Drain would sleep until a released claim is due
	}).Drain(ctx)
	err = run.pending()
	done = err == nil
	switch {
	case seen.Err != nil:
		err = fmt.Errorf("%s: %w", seen.Outcome, seen.Err)
	case seen.Outcome == "": // it did not come to an attempt
		err = errors.Join(err, drained)
	}
	return done, err
}

// pending returns an error that names an event which is pending, or nil.
func (run *trial) pending() error {
	run.Helper()
	for e, err := range run.stored.List(run.Context(), idem.Filter{States: []idem.State{idem.StatePending}}) {
		if err != nil {
			run.Fatal(err)
		}
		return fmt.Errorf("%s %s is pending, its last error is %q", e.Type, e.ID, e.LastError)
	}
	return nil
}
