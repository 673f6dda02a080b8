package idemtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// AnyOrder tests that an application's tables end the same in any order of its
// events.
//
// It delivers the requests in every order: first to an [idem.Inbox] that works first, then to
// an [idem.Inbox] with workers that process each event before the next one comes.
// Each delivery comes twice. An event that is not acknowledged, or fails in a worker, is
// tried again after the others. At the end, as on the next day, all of them come
// once more. Then check looks at the tables. A failure names the order.
//
// Three deliveries have 6 orders and take less than a second, five have 120 and
// take about ten. Of more than five it tries 120 orders: the given one, its
// reverse, and others that are the same in each run.
//
// source, deliveries and check are those of [ExactlyOnce]; source is called for
// each order. Deliver the events of one entity's life, and have check expect the
// end of that life: the state of the newest event, the sum of all that was
// booked. asaastest.NewCharge makes the events of a charge. Each must have a
// time of its own (asaastest.Set("dateCreated", …)) if a handler compares times:
// the times of providers are of a second.
//
// It finds handlers that let an older event overwrite a newer one, that drop an
// event because a newer one was handled, or that update a row which is not there
// yet and return nil. The test also fails if an event is parked, if it still
// fails after all others were handled, and if check is satisfied all the time: before anything
// is delivered and after each event of the given order. So the end may be 0.00, if some event in
// between books more.
//
// It cannot find faults in tables that check does not look at, faults when events of one
// entity are handled at the same time, and those that depend on an event that is not
// among the deliveries. Use [ExactlyOnce] for lost connections.
func AnyOrder(
	t testing.TB,
	source func(pool *pgxpool.Pool) idem.Source,
	deliveries []*http.Request,
	check func(ctx context.Context, pool *pgxpool.Pool) error,
) {
	t.Helper()
	o := &anyOrder{matrix: matrix{TB: t, source: source, check: check}}
	o.connect()
	defer o.direct.Close()
	for _, r := range deliveries {
		o.deliveries = append(o.deliveries, o.read(r))
	}
	o.tryAll()
}

// mostOrders is the number of orders that are tried: those of five deliveries.
const mostOrders = 120

// anyOrder is every order in which an application's events may come.
type anyOrder struct {
	matrix
	deliveries  []*delivery
	unsatisfied bool // check was so at least once
}

// tryAll tries all orders in both modes.
func (o *anyOrder) tryAll() {
	o.Helper()
	for _, inbox := range []bool{false, true} {
		o.byWorkers = inbox
		for n, order := range permutations(len(o.deliveries)) {
			if err := o.try(order, n == 0); err != nil {
				o.wrong("%s, in the order %s: %v", o.mode(), o.names(order), err)
			}
		}
	}
}

func (o *anyOrder) mode() string {
	if o.byWorkers {
		return "an inbox"
	}
	return "work first"
}

// names lists the types of events in an order.
func (o *anyOrder) names(order []int) string {
	var names []string
	for _, n := range order {
		names = append(names, o.deliveries[n].name)
	}
	return strings.Join(names, ", ")
}

// try delivers everything in an order, on an empty schema.
func (o *anyOrder) try(order []int, first bool) error {
	o.Helper()
	run := o.start()
	defer run.end()
	o.look()
	for left := order; len(left) > 0; {
		failed, err := o.deliver(run, left)
		switch {
		case err != nil && failed == nil:
			return err
		case err != nil && len(failed) == len(left):
			return fmt.Errorf("it still fails after all others were handled: %w", err)
		}
		left = failed
	}
	if err := o.settle(run); err != nil {
		return err
	}
	if err := o.check(o.Context(), o.direct); err != nil {
		return err
	}
	if first && !o.unsatisfied {
		o.Fatal("idemtest: check is satisfied before anything is delivered, and after each event: have it return an error for effects that are missing")
	}
	_, err := o.deliver(run, order)
	if err = errors.Join(err, o.settle(run), o.check(o.Context(), o.direct)); err != nil {
		return fmt.Errorf("all came once more: %w", err)
	}
	return nil
}

// look lets check see the tables in between, until it is not satisfied.
func (o *anyOrder) look() {
	if !o.unsatisfied {
		o.unsatisfied = o.check(o.Context(), o.direct) != nil
	}
}

// deliver sends each event twice, and returns those that the provider delivers
// again. With an error and none of those, an event was given up.
func (o *anyOrder) deliver(run *trial, order []int) (failed []int, err error) {
	o.Helper()
	for _, n := range order {
		var failure error
		acknowledged := false
		for range 2 {
			d := o.deliveries[n]
			if acknowledged, failure = run.deliver(d); failure != nil {
				failure = fmt.Errorf("%s was %w", d.name, failure)
			}
			if acknowledged && failure != nil {
				return nil, failure
			}
		}
		if failure != nil {
			failed, err = append(failed, n), failure
		}
		if o.byWorkers {
			_ = o.work(run) // an event that still fails at the end counts
		}
		o.look()
	}
	return failed, err
}

// work has a worker process due events, and after that the failed ones, once.
func (o *anyOrder) work(run *trial) error {
	o.Helper()
	var failure error
	drained := run.work(o.Context(), func(_ context.Context, seen idem.Observation) {
		if seen.Err != nil {
			failure = fmt.Errorf("%s is %s: %w", seen.Event.Type, seen.Outcome, seen.Err)
		}
	})
	return errors.Join(drained, failure)
}

// settle has a worker try the events that still fail, until all is done or nothing changes.
func (o *anyOrder) settle(run *trial) error {
	o.Helper()
	if !o.byWorkers {
		return nil
	}
	var err error
	for range len(o.deliveries) + 1 {
		if err = o.work(run); run.stored(idem.StatePending) == nil {
			return run.stored(idem.StateParked)
		}
	}
	return fmt.Errorf("it still fails after all others were handled: %w", err)
}

// permutations returns the orders of n things, the given one first; of more than
// mostOrders it returns so many, the second of which is the reverse.
func permutations(n int) (all [][]int) {
	given := make([]int, n)
	for i := range given {
		given[i] = i
	}
	if n <= 5 {
		return permute(nil, given)
	}
	reverse := slices.Clone(given)
	slices.Reverse(reverse)
	all = [][]int{given, reverse}
	random := rand.New(rand.NewPCG(1, 2))
	for len(all) < mostOrders {
		if order := random.Perm(n); !slices.ContainsFunc(all, func(o []int) bool { return slices.Equal(o, order) }) {
			all = append(all, order)
		}
	}
	return all
}

// permute returns the orders that begin with first and end with those of rest.
func permute(first, rest []int) (all [][]int) {
	if len(rest) == 0 {
		return [][]int{first}
	}
	for i, n := range rest {
		all = append(all, permute(append(slices.Clone(first), n), slices.Delete(slices.Clone(rest), i, i+1))...)
	}
	return all
}
