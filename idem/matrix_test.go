package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// path is one way that an event takes through this package: a row of the crash
// matrix. Faults happen while it runs, and none before.
type path struct {
	name    string
	handler idem.Handler[*note] // nil for none
	before  func(s *app, id string)
	run     run
	want    kept // once run has said that the event is stored

	// Of an inbox:
	byWorkers bool   // they finish the event
	behind    int    // so many events are behind it, of its key
	later     bool   // a fault may leave it to other workers
	free      bool   // what is behind it need not wait for it
	crashes   int    // it has had, without a fault
	own       string // faults happen at the messages from this one on that begins a statement so, until the next claim

	// cold begins each trial without connections and prepared statements: that
	// is more messages, and more time. The default is to have both.
	cold bool

	// goesOn takes other events after it: a lost answer may be about one of them.
	goesOn bool

	fails bool // its handler does: no answer to COMMIT is lost but that to a count of failures
}

// run takes an event through a path, as often as it is called. An outcome that
// is Stored means that the provider may forget the event.
type run func(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error)

// kept is an event as the database has it.
type kept struct {
	State   idem.State
	Effects int
	Body    bool // its payload
	Claimed bool // by a worker
}

var (
	done      = kept{State: idem.StateDone, Effects: 1}
	doneWhole = kept{State: idem.StateDone, Effects: 1, Body: true}
	parked    = kept{State: idem.StateParked, Body: true}
	unhandled = kept{State: idem.StateUnhandled, Body: true}
)

// paths are the rows of inline mode. Every path ends in the same way, whatever
// it is: see [rig.finish].
var paths = []path{
	{name: "a new event", handler: pay, before: nothingYet, run: deliverOnce, want: done},
	{name: "a new event on a new connection", handler: pay, before: nothingYet, run: deliverOnce, want: done, cold: true},
	{name: "a new event whose payload is kept", handler: pay, before: nothingYet, run: deliverKeeping, want: doneWhole},
	{name: "a new event with savepoints", handler: payInSavepoint, before: nothingYet, run: deliverOnce, want: done},
	{name: "a duplicate", handler: pay, before: doneOnce, run: deliverOnce, want: done},
	{name: "an event that failed", handler: pay, before: failedOnce, run: deliverOnce, want: done},
	{name: "an event that fails, and is parked", handler: payAndFail, before: nothingYet, run: deliverOnce, want: parked, fails: true},
	{name: "an event that was parked", handler: pay, before: parkedOnce, run: deliverOnce, want: done},
	{name: "an event without a handler", before: nothingYet, run: deliverOnce, want: unhandled},
	{name: "an event whose handler is new", handler: pay, before: unhandledOnce, run: deliverOnce, want: done},
	{name: "a new event behind a parked one", handler: pay, before: behindParked, run: deliverOnce, want: parked},
	{name: "a replay that goes on", handler: pay, before: beforeAnother, run: replayOne, want: done, goesOn: true},
	{name: "a replay", handler: pay, before: unhandledOnce, run: replayOne, want: done},
	{name: "a replay that fails", handler: payAndFail, before: parkedOnce, run: replayOne, want: parked, fails: true},
}

// parkAfter makes the second failure of an event its last.
const parkAfter = 2

func (p path) source() *notes {
	source := &notes{}
	if p.handler != nil {
		idem.Handle(&source.Routes, "paid", p.handler)
	}
	return source
}

// payInSavepoint has its first effect undone, and a second one in its place.
func payInSavepoint(ctx context.Context, tx pgx.Tx, n *note) error {
	errUndone := errors.New("undone")
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return errors.Join(pay(ctx, tx, n), errUndone) })
	if err.Error() != errUndone.Error() {
		return err
	}
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return pay(ctx, tx, n) })
}

func nothingYet(*app, string) {}

func doneOnce(s *app, id string) { s.acceptOnce(pay, id, idem.Done) }

func failedOnce(s *app, id string) { s.acceptOnce(payAndFail, id, idem.Retrying) }

func parkedOnce(s *app, id string) {
	failedOnce(s, id)
	s.acceptOnce(payAndFail, id, idem.Parked)
}

func unhandledOnce(s *app, id string) { s.acceptOnce(nil, id, idem.Unhandled) }

func behindParked(s *app, id string) { parkedOnce(s, "head-"+id) }

func beforeAnother(s *app, id string) {
	parkedOnce(s, id)
	s.acceptOnce(pay, "next-"+id, idem.Parked)
}

// acceptOnce takes an event with a handler, without a fault.
func (s *app) acceptOnce(h idem.Handler[*note], id string, want idem.Outcome) {
	s.Helper()
	p := idem.NewProcessor(s.pool, path{handler: h}.source())
	p.Logger, p.ParkAfter = nil, parkAfter
	if got, err := p.Accept(s.Context(), identify([]byte(paid(id)))); got != want {
		s.Fatalf("the event is %s beforehand, %v, want %s", got, err, want)
	}
}

func deliverOnce(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	processor := idem.NewProcessor(p, source)
	processor.ParkAfter = parkAfter
	return deliverTo(ctx, processor, &processor.Common, id)
}

func deliverKeeping(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	processor := idem.NewProcessor(p, source)
	processor.KeepPayloads, processor.ParkAfter = true, parkAfter
	return deliverTo(ctx, processor, &processor.Common, id)
}

// deliverTo posts an event to h, a processor or an inbox. The answer must be what the outcome says: 200 exactly if the event is stored.
func deliverTo(ctx context.Context, h http.Handler, c *idem.Common, id string) (idem.Outcome, error) {
	var observed atomic.Pointer[idem.Observation]
	c.Logger = nil
	c.Observe = func(_ context.Context, o idem.Observation) { observed.Store(&o) }
	server := httptest.NewServer(h)
	defer server.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(paid(id)))
	if err != nil {
		return "", err
	}
	r.Header.Set("token", "right")
	answer, err := server.Client().Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	o := observed.Load()
	if o.Outcome.Acknowledged() != (answer.StatusCode == http.StatusOK) {
		return "", fmt.Errorf("outcome %s is answered %s", o.Outcome, answer.Status)
	}
	return o.Outcome, nil
}

// replayOne replays an event. One that is no longer there to be replayed is a
// duplicate.
func replayOne(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	processor := idem.NewProcessor(p, source)
	processor.Logger, processor.ParkAfter = nil, parkAfter
	replayed, err := processor.Replay(ctx, idem.Filter{IDs: []string{id}})
	switch {
	case err != nil:
		return idem.Retrying, nil
	case replayed.Done > 0:
		return idem.Done, nil
	case replayed.Failed == 1:
		return idem.Parked, nil
	}
	return idem.Duplicate, nil
}

// rig is a path in front of a database: trials happen on pool, through the
// proxy, and what they led to is looked at on the app's own pool.
type rig struct {
	*app
	path
	url     string // of the database
	source  *notes
	proxy   *pgproxy.Proxy
	pool    *pgxpool.Pool
	trials  int
	tries   int      // of the last trial
	victims []string // the application_name of processes that were killed
}

func newRig(t *testing.T, p path, url string) *rig {
	t.Helper()
	r := &rig{path: p, url: url, source: p.source()}
	r.app = openApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	r.reopen()
	return r
}

// reopen begins a trial with a proxy and a pool of its own: what an earlier one
// still does in the background is not counted.
func (r *rig) reopen() {
	r.Helper()
	if r.pool != nil {
		go r.pool.Close()
	}
	r.proxy = new(pgproxy.Proxy)
	r.pool = openPool(r.T, r.url, through(r.proxy))
}

// through leads a pool of one connection through a proxy.
func through(proxy *pgproxy.Proxy) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		proxy.Through(c)
		c.MaxConns = 1
		c.ConnConfig.Tracer = new(acquires)
	}
}

// prepare makes the next event of the path, and returns its id.
func (r *rig) prepare() string {
	r.Helper()
	r.trials++
	r.tries = 0
	id := fmt.Sprintf("e%d", r.trials)
	r.before(r.app, id)
	return id
}

// take runs the path with an event, and checks what is stored if the provider
// may forget it.
func (r *rig) take(id string) idem.Outcome {
	r.Helper()
	if r.byWorkers && r.tries > 0 {
		r.letTimePass()
	}
	r.tries++
	outcome, err := r.run(r.Context(), r.pool, r.source, id)
	if err != nil {
		r.Fatal(err)
	}
	if r.byWorkers {
		r.wantAcknowledged(id, outcome)
		return outcome
	}
	want := r.want
	if outcome == idem.Parked { // a connection that breaks under the handler counts, and may be one failure too many
		want = parked
	}
	if got := r.stored(id); outcome.Acknowledged() && got != want {
		r.Errorf("outcome %s, and stored is %+v, want %+v", outcome, got, want)
	}
	return outcome
}

// takeAgain runs the path as often as a provider might have to. A fault leaves
// at most one broken connection to stumble over.
func (r *rig) takeAgain(id string) {
	r.Helper()
	var outcome idem.Outcome
	for range parkAfter + 2 {
		if outcome = r.take(id); outcome.Acknowledged() {
			return
		}
	}
	r.Errorf("the event is still %s", outcome)
}

// finish delivers an event with a handler that works, as if all were well
// again: by then it is done, and once.
func (r *rig) finish(id string) {
	r.Helper()
	if r.byWorkers {
		r.finishByWorkers(id)
		return
	}
	p := idem.NewProcessor(r.app.pool, path{handler: pay}.source())
	p.Logger, p.KeepPayloads = nil, r.want == doneWhole
	want := done
	if p.KeepPayloads {
		want = doneWhole
	}
	if _, err := p.Discard(r.Context(), idem.Filter{IDs: []string{"head-" + id}}, "it held "+id); err != nil {
		r.Fatal(err)
	}
	for range 2 {
		outcome, err := p.Accept(r.Context(), identify([]byte(paid(id))))
		if got := r.stored(id); err != nil || got != want {
			r.Errorf("in the end the event is %s, %v, and stored is %+v, want %+v", outcome, err, got, want)
		}
	}
	if r.goesOn { // a connection that broke under it is its own failure
		if outcome, err := p.Accept(r.Context(), identify([]byte(paid("next-"+id)))); err != nil {
			r.Errorf("in the end the next event is %s, %v", outcome, err)
		}
	}
	if err := p.GoOn(r.Context()); err != nil {
		r.Error(err)
	}
	if n := queryOne[int](r.app, `select count(*) from idem_payloads where held`); n > 0 {
		r.Errorf("in the end %d events wait", n)
	}
	if n := queryOne[int](r.app, `select count(*) - count(distinct event) from effects`); n > 0 {
		r.Errorf("in the end there are %d effects twice", n)
	}
}

func (r *rig) stored(id string) (k kept) {
	r.Helper()
	const look = `select coalesce((select state from idem_events where event = 'notes//' || $1), ''),
		(select count(*) from effects where event = $1),
		exists (select event from idem_payloads where event = 'notes//' || $1 union all select event from idem_archive where event = 'notes//' || $1),
		exists (select from idem_events where event = 'notes//' || $1 and claimed_by is not null)`
	if err := r.app.pool.QueryRow(r.Context(), look, id).Scan(&k.State, &k.Effects, &k.Body, &k.Claimed); err != nil {
		r.Fatal(err)
	}
	return k
}
