package charges

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// days reads the days of a scan, as many at once as fit into one answer: the rows of one answer cannot move.
func (r *run) days(ctx context.Context, s scan) error {
	first, last := timeOf(cmp.Or(r.at.Day, s.first)), timeOf(s.last)
	for wide := between(first, last); !first.After(last); {
		wide = min(wide, between(first, last))
		to := first.AddDate(0, 0, wide-1)
		whole, err := s.read(ctx, asaas.Date(first.Format(time.DateOnly)), asaas.Date(to.Format(time.DateOnly)))
		if err != nil {
			return err
		}
		if !whole {
			wide = max(wide/2, 1)
			continue
		}
		first, wide = to.AddDate(0, 0, 1), wide*2
		r.at.Day = asaas.Date(first.Format(time.DateOnly))
	}
	return nil
}

// list returns the reading of a list of charges.
func (r *run) list(filter func(from, until asaas.Date) asaas.PaymentFilter) func(context.Context, asaas.Date, asaas.Date) (bool, error) {
	return func(ctx context.Context, from, until asaas.Date) (bool, error) {
		return pages(ctx, from == until, pageOf[asaas.Payment]{
			get: func(ctx context.Context, offset int) (rows []asaas.Payment, more bool, err error) {
				r.within = offset > 0
				defer func() { r.within = false }()
				page, err := call(ctx, r, func() (*asaas.PaymentPage, error) { return r.client.Payments(ctx, filter(from, until), offset) })
				if err != nil {
					return nil, false, err
				}
				return page.Data.Or(nil), page.HasMore.Or(len(page.Data.Or(nil)) == perPage), nil
			},
			id:   func(p asaas.Payment) string { return p.ID },
			take: func(ctx context.Context, p asaas.Payment) error { return r.take(ctx, &p, r.read) },
		})
	}
}

// timeOf returns the time at which a day begins, somewhere: it is for counting days.
func timeOf(day asaas.Date) time.Time {
	at, err := time.Parse(time.DateOnly, string(day))
	if err != nil {
		panic(err) // check has tried that of a cursor
	}
	return at
}

func between(first, last time.Time) int { return int(last.Sub(first)/(24*time.Hour)) + 1 }

// pageOf reads a list of the API.
type pageOf[T any] struct {
	get  func(ctx context.Context, offset int) (rows []T, more bool, err error)
	id   func(T) string
	take func(ctx context.Context, row T) error
}

// moves is the number of times that a day is read again because its rows moved.
const moves = 5

// errMoved is the error of a list whose rows moved while its pages were read.
var errMoved = errors.New("its rows have moved")

// pages reads a list, and takes its rows. It reports false for a list that does not fit into one answer, and takes
// nothing of it; a list of one day it reads page by page. Pages overlap by a row: where the first one is not the last
// of the page before, rows have moved, and one may be missing.
func pages[T any](ctx context.Context, oneDay bool, list pageOf[T]) (whole bool, err error) {
	for range moves {
		if whole, err = list.read(ctx, oneDay); !errors.Is(err, errMoved) {
			return whole, err
		}
	}
	return false, fmt.Errorf("the list of a day moved %d times while it was read: go on at the cursor when fewer charges are made or removed", moves)
}

func (list pageOf[T]) read(ctx context.Context, oneDay bool) (whole bool, err error) {
	last := ""
	for offset := 0; ; {
		rows, more, err := list.get(ctx, offset)
		switch {
		case err != nil:
			return false, err
		case more && !oneDay:
			return false, nil
		case last != "" && (len(rows) == 0 || list.id(rows[0]) != last):
			return false, errMoved
		}
		for _, row := range rows {
			if err := list.take(ctx, row); err != nil {
				return false, err
			}
		}
		switch {
		case !more:
			return true, nil
		case len(rows) < 2:
			return false, errors.New("the list has no end, its pages are empty: see what answers at the API's address")
		}
		if last = list.id(rows[len(rows)-1]); last == "" || last == list.id(rows[0]) {
			return false, errors.New("the list has no end, its pages begin and end with the same row, or with one without an id: see what answers at the API's address")
		}
		offset += len(rows) - 1
	}
}

// pause ends a run that another one is to go on with.
type pause struct{ again time.Duration }

func (*pause) Error() string { return "a pause is wanted: go on at the cursor" }

// call makes a call of the API, within the run's share of the quota.
func call[T any](ctx context.Context, r *run, do func() (*T, error)) (*T, error) {
	if r.report.Calls >= r.Calls && !r.within {
		return nil, new(pause)
	}
	if r.report.Calls > 0 {
		if err := r.wait(ctx); err != nil {
			return nil, err
		}
	}
	r.report.Calls++
	asked := time.Now()
	answer, err := do()
	if err == nil {
		r.read, err = r.readAt(asked)
	}
	if e, ok := errors.AsType[*asaas.APIError](err); ok && ctx.Err() == nil {
		if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable && e.RetryAfter > 0 {
			return nil, &pause{e.RetryAfter}
		}
	}
	return answer, err
}

// apart is the time between two calls.
const apart = 250 * time.Millisecond

func (r *run) wait(ctx context.Context) error {
	if r.client.Wait != nil {
		return r.client.Wait(ctx, apart)
	}
	select {
	case <-time.After(apart):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
