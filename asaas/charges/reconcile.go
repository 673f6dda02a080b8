package charges

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
)

// Settings say what a run of [Reconcile] reads, and what it does with it.
type Settings struct {
	// Scope is the account of the client's key, as of [idem.Event]; "" if there is one.
	Scope string

	// Since is the start of the gap: every earlier event has come. To fill the table, give the day of the first
	// charge. Until is its end. Default: now.
	Since, Until time.Time

	// Apply is the function of [Handler]: it books what a reading changed. Its context is that of no event. Without
	// it and Orders the run fills the table, and books nothing: see [Filled], which it calls if it has copied every
	// charge.
	Apply func(ctx context.Context, tx pgx.Tx, c Change) error

	// Orders is the function of [Orders], instead of Apply.
	Orders func(ctx context.Context, tx pgx.Tx, o Order) (orders int64, err error)

	// Unsettled also reads all cards whose money is still to come: only that finds a card that was confirmed before the
	// gap and refunded in it. It costs a call for each 100 of them; once a week is enough for most.
	Unsettled bool

	// DryRun rolls every change back, after Apply or Orders. Changed is called with it all the same.
	DryRun bool

	// Changed, when set, is called for each charge that the run has changed, after COMMIT.
	Changed func(Change)

	// Calls is the number of API calls after which the run stops, once it has read the list of a day to its end.
	// Asaas allows 25,000 in 12 hours, for all programs of the account. Default: 1,000.
	Calls int

	// Resume is the Cursor of the report of an unfinished run.
	Resume *Cursor
}

// Cursor is the place where a run goes on: a scan, and the first day that it has not read. It can be stored as JSON.
type Cursor struct {
	Since time.Time  `json:"since"`
	Until time.Time  `json:"until"`
	Began time.Time  `json:"began"` // when the first run began: charges that were read since are not read again
	Scan  int        `json:"scan"`
	Day   asaas.Date `json:"day,omitempty"`

	Failed bool `json:"failed,omitempty"` // a charge could not be copied or applied: it is not asked for again, either
}

// Report is the result of a run of [Reconcile].
type Report struct {
	Calls   int // of the API
	Read    int // charges
	Changed int // of them: their rows are different now, or would be after a dry run

	// Gone are charges that are open in the table and that Asaas does not show. Nothing is changed for them: they may
	// have been removed, or the key is that of another account.
	Gone []string
	// Failed are the charges that could not be copied, or of which Apply or Orders returned an error: those were
	// rolled back.
	Failed map[string]error

	// Cursor is the place where the next run goes on; nil if this one came to its end. Again is the pause that Asaas
	// asks for before that; 0 if it asks for none.
	Cursor *Cursor
	Again  time.Duration
}

// Reconcile books missed events: it reads charges from Asaas, copies each into its row, and calls Apply with the
// difference, or Orders with the sum, each in a transaction of its own. It may run at any time, also while events are
// on their way: an event that comes after its charge was read changes nothing. [Daily] calls it each day.
//
// It reads the charges that were made in the gap, those whose money came in it, those that a movement in the
// account's statement names, those whose dispute began in it, those of the table that are open, and the cash receipts
// of 90 days, which may be undone. With Unsettled, it reads the cards whose money is to come. It misses a cash
// receipt that was undone later; a charge that was made and removed in the gap, which is worth 0; a change of a
// charge that is neither open nor in one of those lists; and charges that Asaas's lists show late. A key that may not
// read chargebacks misses a dispute until the statement has its money. A reading counts as an hour older than it is,
// so that an event never loses against it; the next run covers that hour.
//
// It copies the movements of the statement into asaas_statement, each once, for the views asaas_ledger, asaas_months
// and asaas_proof, including earlier ones that Asaas has dated late.
//
// An error ends the run, for example if a list moved five times while it was read. The Report is valid all the same:
// give its Cursor to another run.
func Reconcile(ctx context.Context, client *asaas.Client, db DB, s Settings) (Report, error) {
	return newRun(client, db, s).do(ctx)
}

func newRun(client *asaas.Client, db DB, s Settings) *run {
	r := &run{Settings: s, client: client, db: db, seen: make(map[string]bool)}
	r.report.Failed = make(map[string]error)
	return r
}

// run is one run of Reconcile.
type run struct {
	Settings

	client  *asaas.Client
	answers *dated // the client's
	db      DB
	seen    map[string]bool // the charges that this run has read
	asked   bool            // for the account of the key
	others  map[string]bool // charges without a row and with a done event: other handlers have booked them
	at      Cursor
	within  bool      // the list of a day, which is read to its end
	read    time.Time // when the last answer was given
	report  Report
}

// lag is the age that a reading has at least: the clocks of this machine and of Asaas differ, and lists may be late.
const lag = time.Hour

const (
	perPage     = 100
	ofUnsettled = 2 // the scan of cards whose money is to come
	ofStatement = 3
	ofCash      = 90 // days in which a cash receipt may be undone
)

// scan is one way to find charges: it reads those of the days from first to last, and reports whether that
// was one answer; a single day is read whole.
type scan struct {
	first, last asaas.Date
	read        func(ctx context.Context, from, until asaas.Date) (whole bool, err error)
}

func (r *run) do(ctx context.Context) (Report, error) {
	if err := r.check(); err != nil {
		return r.report, err
	}
	if err := checkScope(ctx, r.db, r.Scope); err != nil {
		return r.report, err
	}
	r.listen()
	fills := !r.books() && !r.DryRun
	err := r.tellTheTime(ctx)
	switch {
	case err != nil, r.Orders != nil:
	case fills:
		err = r.nobodyWaits(ctx)
	default:
		err = r.findOthers(ctx)
	}
	if err == nil && !r.asked {
		err = r.askForAccount(ctx)
		r.asked = err == nil
	}
	if err == nil {
		err = r.scans(ctx)
	}
	if err == nil && fills {
		if r.at.Failed { // the next event of such a charge would be booked whole
			return r.report, errors.New("asaas/charges: the table is not recorded as complete, as charges could not be copied: see Failed, cure them, and run again from the begin")
		}
		err = Filled(ctx, r.db, r.Scope, r.Since)
	}
	if err == nil {
		return r.report, nil
	}
	r.report.Cursor = &r.at
	if stop, ok := errors.AsType[*pause](err); ok {
		r.report.Again = stop.again
		return r.report, nil
	}
	return r.report, fmt.Errorf("asaas/charges: reconciling: %w", err)
}

// books reports whether the run books what it reads.
func (r *run) books() bool { return r.Apply != nil || r.Orders != nil }

func (r *run) check() error {
	r.Calls = cmp.Or(r.Calls, 1000)
	now := time.Now()
	if r.Until.IsZero() {
		r.Until = now
	}
	if r.Resume != nil {
		r.at = *r.Resume
		r.Since, r.Until = r.at.Since, r.at.Until
	}
	r.at.Since, r.at.Until = r.Since, r.Until
	if r.at.Began.IsZero() {
		r.at.Began = now
	}
	switch {
	case r.Since.IsZero():
		return errors.New("asaas/charges: there is no Since: give the time before which every event has come, or the day of the first charge to fill the table")
	case r.Apply != nil && r.Orders != nil:
		return errors.New("asaas/charges: there are an Apply and an Orders: give the function that the program's handler has")
	case !r.books() && !r.DryRun && r.Resume == nil && r.Until.Before(r.at.Began):
		return errors.New("asaas/charges: a run that fills the table reads until now, else the table would not be complete: leave Until out")
	case r.Since.After(r.Until):
		return errors.New("asaas/charges: the gap ends before it begins: give a Since that lies before Until")
	case r.Calls < 10:
		return errors.New("asaas/charges: too few Calls: give 10 or more, or leave them out")
	case r.at.Scan < 0 || r.at.Scan > 5 || r.at.Day != "" && day(r.at.Day) != r.at.Day:
		return errors.New("asaas/charges: the cursor to resume at is of another version: begin anew")
	}
	return nil
}

// nobodyWaits returns an error while events of charges without a row are parked: they are not booked, and the run would
// count them as booked.
func (r *run) nobodyWaits(ctx context.Context) error {
	first, after := keys(r.Scope)
	has, err := hasEvents(ctx, r.db)
	if err != nil || !has {
		return err
	}
	n, err := one[int](ctx, r.db, `select count(*) from idem_events where event >= $1 and event < $2 and state = 'parked' and type like 'PAYMENT\_%'
		and not exists (select from asaas_charges where id = key and scope = $3)`, first, after, r.Scope)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d events are parked whose charges have no row, and nobody has booked them: have the handlers that booked "+
			"so far replay them (idem replay -state parked), or discard them; then fill the table: docs/import.md", n)
	}
	return err
}

// findOthers finds the charges that others have booked, in one reading of the account's events.
func (r *run) findOthers(ctx context.Context) error {
	r.others = make(map[string]bool)
	has, err := hasEvents(ctx, r.db)
	if err != nil || !has {
		return err
	}
	first, after := keys(r.Scope)
	rows, _ := r.db.Query(ctx, `select distinct key from idem_events where event >= $1 and event < $2 and state = 'done' and type like 'PAYMENT\_%'
		and not exists (select from asaas_charges where id = key and scope = $3)
		and not exists (select from asaas_charges_since where scope = $3 and since = '0001-01-01')`, first, after, r.Scope)
	var id string
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error { r.others[id] = true; return nil })
	return err
}

// scans does one scan after the other. What costs a call for each charge comes last, when most are read.
func (r *run) scans(ctx context.Context) error {
	from, until := asaas.Date(dayOf(r.Since.AddDate(0, 0, -1))), asaas.Date(dayOf(r.Until))
	last, err := r.lastOfStatement(ctx)
	if err != nil {
		return err
	}
	all := []scan{
		{from, until, r.list(func(from, until asaas.Date) asaas.PaymentFilter {
			return asaas.PaymentFilter{CreatedFrom: from, CreatedTo: until}
		})},
		{from, until, r.list(func(from, until asaas.Date) asaas.PaymentFilter {
			return asaas.PaymentFilter{PaidFrom: from, PaidTo: until}
		})},
		{from, asaas.Date(dayOf(r.Until.AddDate(2, 0, 0))), r.list(func(from, until asaas.Date) asaas.PaymentFilter {
			return asaas.PaymentFilter{CreditedFrom: from, CreditedTo: until}
		})},
		{r.firstOfStatement(from, last), until, r.statement},
		{from, until, r.chargebacks},
	}
	for ; r.at.Scan < len(all); r.at.Scan, r.at.Day = r.at.Scan+1, "" {
		if r.at.Scan == ofUnsettled && !r.Unsettled {
			continue
		}
		if err := r.days(ctx, all[r.at.Scan]); err != nil {
			return err
		}
		if r.at.Scan == ofStatement {
			if err := r.hasStatement(ctx, all[ofStatement]); err != nil {
				return err
			}
		}
	}
	return r.open(ctx)
}

// open reads the charges of the table whose state will change, or may be undone, and that nothing has found. The list
// of a day shows several of them in one call; a removed charge is in no list.
func (r *run) open(ctx context.Context) error {
	rows, _ := r.db.Query(ctx, `select coalesce(created::text, ''), id from asaas_charges
		where scope = $1 and (open and (status <> 'CONFIRMED' or refunding > 0 or $2) or status = 'RECEIVED_IN_CASH' and received_on >= $4)
		and coalesce(created::text, '') >= $3 order by 1, 2`, r.Scope, r.Unsettled, string(r.at.Day), dayOf(r.Until.AddDate(0, 0, -ofCash)))
	type row struct {
		Day asaas.Date
		ID  string
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return err
	}
	created := r.list(func(from, until asaas.Date) asaas.PaymentFilter {
		return asaas.PaymentFilter{CreatedFrom: from, CreatedTo: until}
	})
	for n, c := range all {
		r.at.Day = c.Day
		if several := n+1 < len(all) && all[n+1].Day == c.Day && !r.seen[all[n+1].ID]; several && c.Day != "" && !r.seen[c.ID] {
			if _, err := created(ctx, c.Day, c.Day); err != nil {
				return err
			}
		}
		if err := r.ask(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// ask reads one charge, if the run has not read it yet.
func (r *run) ask(ctx context.Context, id string) (err error) {
	if id == "" || r.seen[id] {
		return nil
	}
	if r.seen[id], err = r.isRead(ctx, id); err != nil || r.seen[id] {
		return err
	}
	p, err := call(ctx, r, func() (*asaas.Payment, error) { return r.client.Payment(ctx, id) })
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound {
		r.seen[id] = true
		r.report.Gone = append(r.report.Gone, id)
		return nil
	}
	if err != nil {
		return err
	}
	return r.take(ctx, p, r.read)
}

// isRead reports whether a run before the pause has read a charge, or an event has brought it since.
func (r *run) isRead(ctx context.Context, id string) (is bool, err error) {
	return one[bool](ctx, r.db, `select exists (select from asaas_charges where scope = $1 and id = $2 and at >= $3)`,
		r.Scope, id, r.at.Began.Add(-lag).Truncate(time.Second))
}

// errDry rolls a dry run back.
var errDry = errors.New("a dry run")

// take copies a charge that was read at a time, and has the change applied.
func (r *run) take(ctx context.Context, p *asaas.Payment, at time.Time) error {
	if r.seen[p.ID] {
		return nil
	}
	r.seen[p.ID] = true
	r.report.Read++
	var c Change
	how := copying{filling: !r.books(), sums: r.Orders != nil, hasDone: func(_ context.Context, _ pgx.Tx, c *Charge) (bool, error) { return r.others[c.ID], nil }}
	err := begin(ctx, r.db, func(tx pgx.Tx) (err error) {
		if c, err = copyRead(ctx, tx, r.Scope, p, at.Add(-lag), how); err != nil || c.Late {
			return err
		}
		if err = r.apply(ctx, tx, c); err == nil && r.DryRun {
			err = errDry
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, errDry):
		r.report.Failed[p.ID], r.at.Failed = err, true
	case c.differs():
		r.report.Changed++
		if r.Changed != nil {
			r.Changed(c)
		}
	}
	return nil
}

// apply calls Apply or Orders. A panic fails the charge, as it fails an event: in Daily it would end the program.
func (r *run) apply(ctx context.Context, tx pgx.Tx, c Change) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("asaas/charges: the function that books a change panicked: %v", value)
		}
	}()
	switch {
	case r.Orders != nil:
		return c.set(ctx, tx, r.Orders)
	case r.Apply != nil:
		return c.tell(ctx, tx, r.Apply)
	}
	return nil
}

// differs reports whether a copy changed more than the time of the row.
func (c Change) differs() bool {
	before, after := c.Before, c.After
	for _, row := range []*Charge{&before, &after} {
		row.At, row.Event, row.number, row.discount = time.Time{}, "", 0, discount{}
	}
	return !c.Late && before != after
}
