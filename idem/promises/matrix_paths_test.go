package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/idem/internal/store"
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
}

func (p path) source() *notes {
	source := &notes{}
	if p.handler != nil {
		idem.Handle(&source.Routes, "paid", p.handler)
	}
	return source
}

// ownOf are the messages of a run that no other row has.
func (p path) ownOf(steps []pgproxy.Step) []pgproxy.Step {
	if p.own == "" {
		return steps
	}
	claims := slices.IndexFunc(steps, func(s pgproxy.Step) bool { return s.Statement == claimBegins })
	from := claims + slices.IndexFunc(steps[max(claims, 0):], func(s pgproxy.Step) bool {
		return s.Statement != claimBegins && strings.HasPrefix(s.Statement, p.own)
	})
	if claims < 0 || from < claims {
		return nil
	}
	own := steps[from:]
	if to := slices.IndexFunc(own, func(s pgproxy.Step) bool { return s.Statement == claimBegins }); to >= 0 {
		own = own[:to]
	}
	return own
}

// run takes an event through a path, as often as it is called. An outcome that
// is Stored means that the provider may forget the event.
type run func(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error)

// paths are the rows of first tries where no workers run. Every path ends in the same way, whatever
// it is: see [rig.finish].
var paths = []path{
	{name: "a new event", handler: pay, before: nothingYet, run: deliverOnce, want: done},
	{name: "a new event on a new connection", handler: pay, before: nothingYet, run: deliverOnce, want: done, cold: true},
	{name: "a new event whose payload is kept", handler: pay, before: nothingYet, run: deliverKeeping, want: doneWhole},
	{name: "a new event with savepoints", handler: payInSavepoint, before: nothingYet, run: deliverOnce, want: done},
	{name: "a duplicate", handler: pay, before: doneOnce, run: deliverOnce, want: done},
	{name: "an event without a handler", before: nothingYet, run: deliverOnce, want: unhandled},
}

func nothingYet(*app, string) {}

func deliverOnce(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	first := newFirst(p, source)
	return deliverTo(ctx, first, first, id)
}

// deliverTo posts an event to h, an inbox. The answer must be what the outcome says: 200 exactly if the event is stored.
func deliverTo(ctx context.Context, h http.Handler, c *idem.Inbox, id string) (idem.Outcome, error) {
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

func deliverKeeping(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	first := newFirst(p, source)
	first.KeepPayloads = true
	return deliverTo(ctx, first, first, id)
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

func doneOnce(s *app, id string) { s.acceptOnce(pay, id, idem.Done) }

// acceptOnce takes an event with a handler, without a fault.
func (s *app) acceptOnce(h idem.Handler[*note], id string, want idem.Outcome) {
	s.Helper()
	p := newFirst(s.Pool, path{handler: h}.source())
	p.Logger = nil
	if got, err := p.Accept(s.Context(), identify([]byte(paid(id)))); got != want {
		s.Fatalf("the event is %s beforehand, %v, want %s", got, err, want)
	}
}

func parkedOnce(s *app, id string) {
	s.Helper()
	storedOnce(s, id)
	i := quietInbox(s.Pool, path{handler: payAndGiveUp}.source())
	if err := i.Drain(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.WantState(id, idem.StateParked)
}

func unhandledOnce(s *app, id string) { s.acceptOnce(nil, id, idem.Unhandled) }

// beforeAnother leaves an event parked, and another behind it.
func beforeAnother(s *app, id string) {
	storedOnce(s, id)
	s.Exec(fmt.Sprintf(`update idem_events set state = 'parked', attempts = 1 where event = 'notes//%s'`, id))
	s.Exec(fmt.Sprintf(`update idem_payloads set due_at = null where event = 'notes//%s'`, id))
	storedOnce(s, behindIt(id, 1))
	s.Exec(fmt.Sprintf(`update idem_payloads set due_at = null where event = 'notes//%s'`, behindIt(id, 1)))
}

// replayOne replays an event. One that is no longer there to be replayed is a
// duplicate, and one that a process has claimed that was killed is left.
func replayOne(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	first := newFirst(p, source)
	first.Logger = nil
	replayed, err := first.Replay(ctx, idem.Filter{IDs: []string{id}})
	switch {
	case err != nil:
		return idem.Retrying, nil
	case replayed.Done > 0:
		return idem.Done, nil
	case replayed.Failed == 1:
		return idem.Parked, nil
	case replayed.Left == 1:
		return idem.Retrying, nil
	}
	return idem.Duplicate, nil
}

// inboxPaths are the rows of an inbox: of what arrives, of what its workers do,
// and of what operators do.
var inboxPaths = slices.Concat(arrivalPaths, firstPaths, claimPaths, workPaths, operatorPaths, replayPaths)

var arrivalPaths = []path{
	{name: "an arrival", handler: pay, before: nothingYet, run: storeOne, want: pending, byWorkers: true},
	{name: "an arrival again", handler: pay, before: storedOnce, run: storeOne, want: pending, byWorkers: true},
	{name: "an arrival that had no handler", handler: pay, before: unhandledOnce, run: storeOne, want: pending, byWorkers: true},
	{name: "an arrival that was parked", handler: pay, before: parkedOnce, run: storeOne, want: pending, byWorkers: true},
	{name: "arrivals at once", handler: pay, before: nothingYet, run: storeTogether, want: pending, byWorkers: true, behind: 2},
}

// firstPaths are the rows of first tries that workers stand behind.
var firstPaths = []path{
	{name: "a first try", handler: pay, before: nothingYet, run: tryOne, want: done, byWorkers: true, later: true},
	{name: "a first try that fails", handler: payAndFail, before: nothingYet, run: tryOne, want: pending, byWorkers: true},
	{name: "a first try behind another event", handler: pay, before: behindClaimed, run: tryOne, want: pending, byWorkers: true, later: true},
}

// tryOne delivers an event to an inbox that works first, beside workers that do nothing.
func tryOne(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	if err := aliveElsewhere(ctx, p); err != nil {
		return "", err
	}
	i := quietInbox(p, source)
	i.WorkFirst = true
	return deliverTo(ctx, i, i, id)
}

// aliveElsewhere has a worker be alive, over a connection of its own.
func aliveElsewhere(ctx context.Context, p *pgxpool.Pool) error {
	const alive = `insert into idem_workers (id, source, host, pid, started_at, seen_at) values (2, 'notes', 'shop-1', 7, now(), now())
		on conflict (id) do update set seen_at = now()`
	_, err := beside(ctx, p, alive+"; commit", func(*pgx.Conn) (idem.Outcome, error) { return "", nil })
	return err
}

// behindClaimed leaves an event of the same entity to a worker.
func behindClaimed(s *app, id string) {
	storedOnce(s, "head-"+id)
	s.ClaimElsewhere("head-" + id)
}

func storeOne(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	i := quietInbox(p, source)
	return deliverTo(ctx, i, i, id)
}

// quietInbox is an inbox with one worker that does nothing by itself.
func quietInbox(p *pgxpool.Pool, source *notes) *idem.Inbox {
	i := idem.NewInbox(p, source)
	i.Logger = nil
	i.Workers, i.PollOnly = 1, true
	i.Backoff = func(int) time.Duration { return time.Hour }
	return i
}

var (
	pending   = kept{State: idem.StatePending, Body: true}
	claimed   = kept{State: idem.StatePending, Body: true, Claimed: true}
	discarded = kept{State: idem.StateDiscarded}
)

func storedOnce(s *app, id string) {
	s.Helper()
	i := quietInbox(s.Pool, path{}.source())
	if o, err := i.Accept(s.Context(), identify([]byte(paid(id)))); o != idem.Pending {
		s.Fatalf("the event is %s beforehand, %v, want %s", o, err, idem.Pending)
	}
}

// storeTogether has the second to fourth delivery arrive while the first is
// being stored: they go together. The fourth is the third again.
func storeTogether(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	conn, err := p.Acquire(ctx) // the only one
	if err != nil {
		return idem.Retrying, nil
	}
	wanted := &p.Config().ConnConfig.Tracer.(*acquires).n
	before := wanted.Load()
	i := quietInbox(p, source)
	ids := []string{id, behindIt(id, 1), behindIt(id, 2), behindIt(id, 2)}
	outcomes := make(chan idem.Outcome, len(ids))
	for n, id := range ids {
		go func() {
			e := identify([]byte(paid(id)))
			e.OccurredAt = time.Unix(int64(n), 0) // so that one that comes again has its place
			o, _ := i.Accept(ctx, e)
			outcomes <- o
		}()
		for (engineOf(i).(writer).Waiting() != n || wanted.Load() == before) && len(outcomes) == 0 { // none has given up
			runtime.Gosched()
		}
	}
	conn.Release()
	all := idem.Pending
	for range ids {
		if o := <-outcomes; !o.Acknowledged() {
			all = idem.Retrying
		}
	}
	return all, nil
}

// acquires counts attempts to get a connection.
type acquires struct{ n atomic.Int64 }

func (a *acquires) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	a.n.Add(1)
	return ctx
}

func (*acquires) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (*acquires) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*acquires) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// behindIt is the id of the n-th event behind another.
func behindIt(id string, n int) string { return fmt.Sprintf("%s.%d", id, n) }

var claimPaths = []path{
	{name: "a claim", handler: pay, before: storedOnce, run: claimTwo, want: claimed, byWorkers: true, later: true, crashes: 1},
	{name: "a claim that holds an event back", handler: pay, before: twoStored, run: claimTwo, want: claimed, byWorkers: true, behind: 1, later: true, crashes: 1},
	{name: "a claim that defers an event", handler: pay, before: firstClaimed, run: claimWhileBusy, want: claimed, byWorkers: true, behind: 1, later: true, crashes: 1},
}

// claimTwo claims two events, as a worker that then dies. The outcome is what
// the provider was told before.
func claimTwo(ctx context.Context, p *pgxpool.Pool, source *notes, _ string) (idem.Outcome, error) {
	_, _ = store.ClaimEvents(ctx, p, store.Search{Source: source.Name(), Limit: 2, Worker: 1, Crashed: 2})
	return idem.Pending, ctx.Err()
}

func twoStored(s *app, id string) {
	storedOnce(s, id)
	storedOnce(s, behindIt(id, 1))
}

// firstClaimed leaves the first event to a worker.
func firstClaimed(s *app, id string) {
	twoStored(s, id)
	s.ClaimElsewhere(id)
}

// claimWhileBusy is claimTwo while another process processes the first event.
func claimWhileBusy(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	lock := fmt.Sprintf(`select from idem_payloads where event = 'notes//%s' for update`, id)
	return beside(ctx, p, lock, func(*pgx.Conn) (idem.Outcome, error) { return claimTwo(ctx, p, source, id) })
}

// beside calls f while a transaction that has executed sql is open.
func beside(ctx context.Context, p *pgxpool.Pool, sql string, f func(*pgx.Conn) (idem.Outcome, error)) (outcome idem.Outcome, err error) {
	config := p.Config().ConnConfig
	config.AfterNetConnect = nil // not through the proxy
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	if _, err = conn.Exec(ctx, "begin; "+sql); err == nil {
		outcome, err = f(conn)
	}
	return outcome, errors.Join(err, conn.Close(ctx))
}

var workPaths = []path{
	{name: "work", handler: pay, before: twoStored, run: drainOne, want: done, byWorkers: true, behind: 1, later: true, own: fromBegin},
	{name: "work whose payload is kept", handler: pay, before: storedOnce, run: drainKeeping, want: doneWhole, byWorkers: true, later: true, own: fromBegin},
	{name: "work that promotes an event", handler: pay, before: secondHeldBack, run: drainOne, want: done, byWorkers: true, behind: 1, later: true, own: fromBegin},
	{name: "work after a crash", handler: pay, before: crashedOnce, run: drainOne, want: done, byWorkers: true, behind: 1, later: true, own: fromBegin, crashes: 1},
	{name: "work in declared statements", handler: payAtCommit, before: secondHeldBack, run: drainOne, want: done, byWorkers: true, behind: 1, later: true, own: fromBegin},
	{name: "work that fails", handler: payAndFail, before: twoStored, run: drainOne, want: pending, byWorkers: true, behind: 1, later: true, own: fromBegin},
	{name: "work that is parked", handler: payAndGiveUp, before: secondHeldBack, run: drainOne, want: parked, byWorkers: true, behind: 1, later: true, own: fromBegin},
	{name: "work that is parked and passed", handler: payAndGiveUp, before: secondHeldBack, run: drainPassing, want: parked, byWorkers: true, behind: 1, later: true, free: true, own: fromBegin},
	{name: "work without a handler", before: secondHeldBack, run: drainOne, want: unhandled, byWorkers: true, behind: 1, later: true, free: true, own: "with settled as"},
	{name: "work whose key is busy", handler: pay, before: twoStored, run: drainWhileBusy, want: pending, byWorkers: true, behind: 1, later: true, own: fromBegin},
}

// drainOne has a worker do what is due.
func drainOne(ctx context.Context, p *pgxpool.Pool, source *notes, _ string) (idem.Outcome, error) {
	return drained(ctx, quietInbox(p, source))
}

func drained(ctx context.Context, i *idem.Inbox) (idem.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = i.Drain(ctx) // the connection may be cut while it claims
	return idem.Pending, ctx.Err()
}

const fromMark, fromBegin = "with marked as", "begin"

func drainKeeping(ctx context.Context, p *pgxpool.Pool, source *notes, _ string) (idem.Outcome, error) {
	i := quietInbox(p, source)
	i.KeepPayloads = true
	return drained(ctx, i)
}

// secondHeldBack has the second event wait until the first promotes it.
func secondHeldBack(s *app, id string) {
	twoStored(s, id)
	s.Exec(fmt.Sprintf(`update idem_payloads set due_at = null where event = 'notes//%s'`, behindIt(id, 1)))
}

// crashedOnce leaves the first event to a worker that is no more.
func crashedOnce(s *app, id string) {
	twoStored(s, id)
	s.Exec(fmt.Sprintf(`update idem_events set starts = 1, claimed_by = -1 where event = 'notes//%s'`, id))
}

func payAtCommit(ctx context.Context, _ pgx.Tx, n *note) error {
	idem.ExecAtCommit(ctx, `insert into effects (event) values ($1)`, n.ID)
	return nil
}

func payAndGiveUp(ctx context.Context, tx pgx.Tx, n *note) error {
	return idem.NoRetry(payAndFail(ctx, tx, n))
}

func drainPassing(ctx context.Context, p *pgxpool.Pool, source *notes, _ string) (idem.Outcome, error) {
	i := quietInbox(p, source)
	i.PassParked = true
	return drained(ctx, i)
}

// drainWhileBusy has a worker claim the event while another process processes one
// of its key, and lets it be once it has released the claim.
func drainWhileBusy(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	const lock = `select pg_advisory_xact_lock(hashtextextended('notes//o1', 'idem_events'::regclass::oid::bigint))`
	return beside(ctx, p, lock, func(conn *pgx.Conn) (idem.Outcome, error) {
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		drained := make(chan struct{})
		go func() { defer close(drained); _ = quietInbox(p, source).Drain(ctx) }()
		for released := false; !released; {
			select {
			case <-drained:
				return idem.Pending, ctx.Err()
			default:
			}
			const query = `select starts > 0 and claimed_by is null from idem_events where event = 'notes//' || $1`
			if err := conn.QueryRow(ctx, query, id).Scan(&released); err != nil {
				return "", err
			}
		}
		stop()
		<-drained
		return idem.Pending, nil
	})
}

var operatorPaths = []path{
	{name: "an event that is requeued", handler: pay, before: parkedOnce, run: requeue, want: pending, byWorkers: true},
	{name: "an event that is discarded", handler: pay, before: parkedOnce, run: discard, want: discarded, byWorkers: true},
	{name: "a replay of a pending event", handler: pay, before: secondHeldBack, run: replayPending, want: done, byWorkers: true, behind: 1},
}

var replayPaths = []path{
	{name: "a replay", handler: pay, before: unhandledOnce, run: replayOne, want: done, byWorkers: true, later: true},
	{name: "a replay of what others wait for", handler: pay, before: beforeAnother, run: replayOne, want: done, byWorkers: true, behind: 1, later: true},
	{name: "a replay that fails", handler: payAndFail, before: parkedOnce, run: replayOne, want: parked, byWorkers: true, later: true},
}

func requeue(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	return settled(quietInbox(p, source).Requeue(ctx, idem.Filter{IDs: []string{id}}))
}

// settled is an operator's knowledge of an event: one that is no longer there to
// be settled was so before.
func settled(n int64, err error) (idem.Outcome, error) {
	switch {
	case err != nil:
		return idem.Retrying, nil
	case n == 0:
		return idem.Duplicate, nil
	}
	return idem.Pending, nil
}

func discard(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	return settled(quietInbox(p, source).Discard(ctx, idem.Filter{IDs: []string{id}}, "it was paid by hand"))
}

func replayPending(ctx context.Context, p *pgxpool.Pool, source *notes, id string) (idem.Outcome, error) {
	i := quietInbox(p, source)
	replayed, err := i.Replay(ctx, idem.Filter{IDs: []string{id}, States: []idem.State{idem.StatePending, idem.StateParked}})
	if err == nil && replayed.Failed > 0 { // the connection broke under the handler
		return idem.Retrying, nil
	}
	return settled(int64(replayed.Done), err)
}
