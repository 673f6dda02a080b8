package idemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// AnyOrder tests that an application's tables end the same in any order of its
// events.
//
// It delivers the requests in every order: first to an [idem.Processor], then to
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
	for _, r := range deliveries {
		o.deliveries = append(o.deliveries, o.read(r))
	}
	o.connect()
	defer o.direct.Close()
	o.tryAll()
}

// mostOrders is the number of orders that are tried: those of five deliveries.
const mostOrders = 120

// anyOrder is every order in which an application's events may come.
type anyOrder struct {
	matrix
	deliveries  []delivery
	unsatisfied bool // check was so at least once
}

// delivery is a request that can be sent again and again.
type delivery struct {
	request *http.Request
	body    []byte
	name    string // its event's type
}

func (o *anyOrder) read(r *http.Request) delivery {
	o.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		o.Fatalf("idemtest: a delivery's body cannot be read: %v", err)
	}
	return delivery{r, body, "a delivery"}
}

func (d delivery) again(ctx context.Context) *http.Request {
	r := d.request.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(d.body))
	return r
}

// tryAll tries all orders in both modes.
func (o *anyOrder) tryAll() {
	o.Helper()
	failures := 0
	for _, inbox := range []bool{false, true} {
		o.byWorkers = inbox
		for n, order := range permutations(len(o.deliveries)) {
			err := o.try(order, n == 0)
			if err == nil {
				continue
			}
			o.Errorf("idemtest: %s, in the order %s: %v", o.mode(), o.names(order), err)
			if failures++; failures == mostFailures {
				o.Fatalf("idemtest: %d orders had wrong effects: the rest is not tried", failures)
			}
		}
	}
}

func (o *anyOrder) mode() string {
	if o.byWorkers {
		return "an inbox"
	}
	return "inline"
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
			if acknowledged, failure = o.deliverOnce(run, n); acknowledged && failure != nil {
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

func (o *anyOrder) deliverOnce(run *trial, n int) (acknowledged bool, err error) {
	o.Helper()
	d := &o.deliveries[n]
	var seen idem.Observation
	w := httptest.NewRecorder()
	o.receiver(run, func(_ context.Context, s idem.Observation) { seen = s }).ServeHTTP(w, d.again(o.Context()))
	if seen.Event.Type != "" {
		d.name = seen.Event.Type
	}
	acknowledged = w.Code == http.StatusOK
	if !acknowledged || seen.Err != nil {
		err = fmt.Errorf("%s was answered %d, %s: %w", d.name, w.Code, seen.Outcome, seen.Err)
	}
	return acknowledged, err
}

// receiver parks no event because it was tried often.
func (o *anyOrder) receiver(run *trial, observe func(context.Context, idem.Observation)) http.Handler {
	if o.byWorkers {
		return o.inbox(run, observe)
	}
	p := idem.NewProcessor(run.pool, run.app)
	p.Logger, p.Observe, p.ParkAfter = nil, observe, 1<<20
	return p
}

func (o *anyOrder) inbox(run *trial, observe func(context.Context, idem.Observation)) *idem.Inbox {
	i := run.inbox(observe)
	i.MaxAttempts = 1 << 20
	return i
}

// work has a worker process due events, and after that the failed ones, once.
func (o *anyOrder) work(run *trial) error {
	o.Helper()
	var failure error
	if _, err := run.direct.Exec(o.Context(), timePasses); err != nil {
		o.Fatal(err)
	}
	inbox := o.inbox(run, func(_ context.Context, seen idem.Observation) {
		if seen.Err != nil {
			failure = fmt.Errorf("%s is %s: %w", seen.Event.Type, seen.Outcome, seen.Err)
		}
	})
	drained := inbox.Drain(o.Context())
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
		if err = o.work(run); run.pending() == nil {
			return run.parked()
		}
	}
	return fmt.Errorf("it still fails after all others were handled: %w", err)
}

// parked returns an error that names an event which is parked, or nil.
func (run *trial) parked() error {
	run.Helper()
	for e, err := range run.stored.List(run.Context(), idem.Filter{States: []idem.State{idem.StateParked}}) {
		if err != nil {
			run.Fatal(err)
		}
		return fmt.Errorf("%s %s is parked, its last error is %q", e.Type, e.ID, e.LastError)
	}
	return nil
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
