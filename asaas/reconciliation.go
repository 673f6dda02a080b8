package asaas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// reconciliation is one run of Reconcile.
type reconciliation struct {
	Reconciliation

	client *Client
	yield  func(ReconcileProgress, error) bool
	types  []EventType
	open   []string
	scans  []scan

	cursor ReconcileCursor // all before it is compared and reported
	next   ReconcileCursor // the charges between are in batch
	batch  []found
	seen   map[string]bool
	count  ReconcileCounts
}

// scan is one way to find charges. page returns those of the page at the cursor r.next,
// and moves it on.
type scan struct {
	name string
	page func(ctx context.Context) (page scanned, err error)
}

// scanned is a page of a scan.
type scanned struct {
	payments []*Payment
	rows     []string // the ids that the page lists
	total    int      // on all pages; 0 if that is not known
	more     bool
}

// found is a charge, and the scan that found it.
type found struct {
	payment *Payment
	by      string
}

// window returns the first and the last day of the gap, with one more before.
func (r *reconciliation) window() (from, until string) {
	return dayIn(r.Since.AddDate(0, 0, -1)), dayIn(r.Until)
}

func (r *reconciliation) tell(p ReconcileProgress) error {
	p.Counts, p.Cursor = r.count, r.cursor
	if r.cursor.Scan < len(r.scans) {
		p.Scan = r.scans[r.cursor.Scan].name
	}
	if !r.yield(p, nil) {
		return errLeft
	}
	return nil
}

// pauseWanted ends a run that another one is to go on with.
type pauseWanted struct{ d time.Duration }

func (*pauseWanted) Error() string { return "a pause is wanted: resume later" }

// call makes a call of the API, within the run's share of the quota.
func call[T any](ctx context.Context, r *reconciliation, do func() (*T, error)) (*T, error) {
	if r.count.Calls >= r.Calls {
		return nil, &pauseWanted{}
	}
	if r.count.Calls > 0 {
		if err := r.client.wait(ctx, r.Pause); err != nil {
			return nil, fmt.Errorf("%s, resume at the last cursor: %w", ended(ctx), err)
		}
	}
	r.count.Calls++
	answer, err := do()
	switch e, ok := errors.AsType[*APIError](err); {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s, resume at the last cursor: %w", ended(ctx), context.Cause(ctx))
	case ok && (e.isPause() || e.Status == http.StatusTooManyRequests):
		return nil, &pauseWanted{e.RetryAfter}
	}
	return answer, err
}
