package charges

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/health/check"
)

// Daily calls [Reconcile] once a day, and once a week with the cards whose money is to come. Give it to [idem.Serve]:
//
//	err := idem.Serve(ctx, server, inbox, &charges.Daily{Client: client, DB: pool, Orders: paid})
//
// Of many processes, one at a time reads an account. The first run begins 14 days back, each other one a day before
// the last one began that has copied and applied every charge: one that failed is read again each day. So the
// account's statement is a table from 14 days before the first run on, and of an account that was filled from the
// first day on: asaas_statement. Give it to health.New as well.
type Daily struct {
	Client *asaas.Client
	DB     *pgxpool.Pool
	Scope  string // the account of the client's key; "" if there is one

	// Orders is the function of [Orders], and Apply that of [Handler]. One of them must be set; to fill the table, call
	// [Reconcile] once.
	Orders func(ctx context.Context, tx pgx.Tx, o Order) (orders int64, err error)
	Apply  func(ctx context.Context, tx pgx.Tx, c Change) error

	// Logger gets a line for each run, and for each charge that could not be copied. Default: slog.Default().
	Logger *slog.Logger

	asked bool // for the account of the key, in the run that is to go on

	sometimes sometimes // the check of the statement
}

const (
	looks   = 10 * time.Minute // the pause between two looks at whether a run is due
	turn    = 30 * time.Minute // a process has an account that long; a run that takes longer goes on in the next turn
	hour    = time.Hour        // the pause after the calls of a run: 12,000 in 12 hours at most
	oldest  = 14 * 24 * time.Hour
	weekly  = 7*24*time.Hour - hour
	daily   = 24*time.Hour - hour
	overlap = 24 * time.Hour
	longest = 12 * time.Hour // Asaas counts calls over that time
)

// Run reconciles until ctx ends, and returns nil then. A fault of Asaas's or of the database is logged, and tried
// again.
func (d *Daily) Run(ctx context.Context) error {
	if d.Client == nil || d.DB == nil || (d.Orders == nil) == (d.Apply == nil) {
		return errors.New("asaas/charges: Daily needs a Client, a DB, and an Orders or an Apply: set them")
	}
	if err := checkScope(ctx, d.DB, d.Scope); errors.Is(err, errNoScope) {
		return err
	}
	for {
		pause, err := d.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			d.logger().ErrorContext(ctx, "charges could not be reconciled", "account", d.Scope, "again_in", pause, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *Daily) logger() *slog.Logger { return cmp.Or(d.Logger, slog.Default()) }

// state is a row of asaas_charges_runs.
type state struct {
	Began, Unsettled *time.Time
	Cursor           []byte
	Now              time.Time // of the database
}

// look runs what is due, if no other process does, and returns the time until the next look.
func (d *Daily) look(ctx context.Context) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, turn-5*time.Minute)
	defer cancel()
	if err := checkScope(ctx, d.DB, d.Scope); err != nil {
		return looks, err
	}
	s, taken, err := d.take(ctx)
	if err != nil || !taken {
		return looks, err
	}
	settings, due, err := d.settings(s)
	if err != nil || !due {
		return looks, errors.Join(err, d.end(ctx, `taken = now(), cursor = null`))
	}
	r := newRun(d.Client, d.DB, settings)
	r.asked = d.asked && settings.Resume != nil
	report, err := r.do(ctx)
	d.asked = r.asked
	d.tell(ctx, report)
	ctx = context.WithoutCancel(ctx)
	ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = errors.Join(err, d.end(ctx, `failed = case when $2 then failed else '{}' end || $3`, settings.Resume != nil, slices.Sorted(maps.Keys(report.Failed))))
	if report.Cursor != nil {
		cursor, fault := json.Marshal(report.Cursor)
		pause := min(cmp.Or(report.Again, hour), longest)
		if err != nil {
			pause = looks
		}
		return pause, errors.Join(err, fault, d.end(ctx, `taken = now() + $2, cursor = $3`, pause, cursor))
	}
	failed := len(report.Failed) > 0 || settings.Resume != nil && settings.Resume.Failed
	if err == nil {
		err = d.end(ctx, `ended = now()`)
	}
	switch {
	case err != nil: // the cursor makes no sense: what it has read is read again
		return looks, errors.Join(err, d.end(ctx, `taken = now(), cursor = null`))
	case failed:
		return looks, d.end(ctx, `taken = now() + $2, cursor = null`, daily)
	case settings.Unsettled:
		return looks, d.end(ctx, `taken = now(), cursor = null, began = $2, unsettled = $2`, settings.Until)
	}
	return looks, d.end(ctx, `taken = now(), cursor = null, began = $2`, settings.Until)
}

// take gives this process a turn, unless another one has it.
func (d *Daily) take(ctx context.Context) (s state, taken bool, err error) {
	err = again(ctx, d.DB, func() error {
		rows, _ := d.DB.Query(ctx, `insert into asaas_charges_runs as r (scope, taken) values ($1, now() + $2)
			on conflict (scope) do update set taken = excluded.taken where r.taken <= now() or r.taken > now() + interval '1 day' -- the clock was wrong
			returning began, unsettled, cursor, now()`, d.Scope, turn)
		s, err = pgx.CollectOneRow(rows, pgx.RowToStructByPos[state])
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, false, nil
	case err != nil:
		return s, false, fmt.Errorf("asaas/charges: looking for the last run: %w", err)
	}
	return s, true, nil
}

func (d *Daily) end(ctx context.Context, set string, args ...any) error {
	err := exec(ctx, d.DB, `update asaas_charges_runs set `+set+` where scope = $1`, append([]any{d.Scope}, args...)...)
	if err != nil {
		return fmt.Errorf("asaas/charges: recording a run: %w", err)
	}
	return nil
}

// settings returns what the next run reads, and whether it is due.
func (d *Daily) settings(s state) (out Settings, due bool, err error) {
	out = Settings{Scope: d.Scope, Orders: d.Orders, Apply: d.Apply, Until: s.Now, Since: s.Now.Add(-oldest)}
	out.Unsettled = isDue(s.Unsettled, weekly, s.Now)
	if s.Began != nil && !s.Began.After(s.Now) {
		out.Since = s.Began.Add(-overlap)
	}
	if s.Cursor != nil {
		out.Resume = new(Cursor)
		if err := json.Unmarshal(s.Cursor, out.Resume); err != nil {
			return out, false, fmt.Errorf("asaas/charges: the cursor of the last run is not of this version, so that the next one begins anew: %w", err)
		}
		out.Until = out.Resume.Until
		out.Unsettled = out.Unsettled && out.Resume.Scan <= ofUnsettled // else this run does not do that scan any more
		return out, true, nil
	}
	return out, isDue(s.Began, daily, s.Now), nil
}

// isDue reports whether a run is due again: also one that the clock, which was wrong then, has made later than now.
func isDue(last *time.Time, every time.Duration, now time.Time) bool {
	return last == nil || now.Sub(*last) >= every || last.After(now)
}

func (d *Daily) tell(ctx context.Context, r Report) {
	log := d.logger()
	for id, err := range r.Failed {
		log.ErrorContext(ctx, "a charge could not be reconciled", "account", d.Scope, "charge", id, "error", err)
	}
	log.InfoContext(ctx, "charges reconciled", "account", d.Scope, "read", r.Read, "changed", r.Changed, "failed", len(r.Failed),
		"gone", len(r.Gone), "calls", r.Calls, "to_be_continued", r.Cursor != nil)
}

// overdue is the time without the end of a run that fails the check of Examine.
const overdue = 2 * 24 * time.Hour

// Examine implements a part of package health. The check reconcile fails while a charge could not be copied or
// applied in the last run, by whichever process, and while no run has begun or come to its end for two days. The
// check statement fails while the table and the account's statement differ, by the view asaas_proof; it asks the
// database every five minutes.
func (d *Daily) Examine(ctx context.Context, limits check.Limits) []check.Result {
	const refused = "have charges.Migrate run at start, or grant asaas_charges_runs and asaas_charges_migrations"
	results := []check.Result{examine(ctx, limits, "reconcile", refused, "see what the database is doing", d.examine)}
	return append(results, d.sometimes.look(func() check.Result {
		return examine(ctx, limits, "statement", "have charges.Migrate run at start, or grant asaas_proof", "give the check more time", d.prove)
	})...)
}

// prove counts the charges of which the table and the statement differ.
func (d *Daily) prove(ctx context.Context) (bad int64, says string, err error) {
	if err := checkScope(ctx, d.DB, d.Scope); err != nil {
		return 0, "", err
	}
	type proof struct {
		Differ, Unjudged int64
		First            string
	}
	rows, _ := d.DB.Query(ctx, `select count(*) filter (where differs), count(*) filter (where differs is null), coalesce(min(charge) filter (where differs), '')
		from asaas_proof where scope = $1`, d.Scope)
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[proof])
	switch {
	case err != nil:
		return 0, "", err
	case p.Differ > 0:
		return p.Differ, fmt.Sprintf("the table and the account's statement differ: %d charges, the first is %s: list them with "+
			"select * from asaas_proof where differs, and reconcile from the day on which their money moved", p.Differ, p.First), nil
	}
	return 0, fmt.Sprintf("the table and the account's statement agree; %d charges could not be judged", p.Unjudged), nil
}

func (d *Daily) examine(ctx context.Context) (bad int64, says string, err error) {
	if err := checkScope(ctx, d.DB, d.Scope); err != nil {
		return 0, "", err
	}
	type run struct {
		Made         time.Time  // the tables, by their first migration
		Began, Ended *time.Time // the first run, the last one
		Failed       []string
		Now          time.Time
	}
	rows, _ := d.DB.Query(ctx, `select m.applied_at, r.since, r.ended, r.failed, now()
		from asaas_charges_migrations m left join asaas_charges_runs r on r.scope = $1 where m.version = 1`, d.Scope)
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[run])
	if err != nil {
		return 0, "", err
	}
	at, text, next := r.Made, "no run has begun yet, and the tables are of ", "run Daily: give it to idem.Serve"
	if r.Began != nil {
		at, text, next = *r.Began, "no run has come to its end since ", "see the errors in this application's log, and whether a program has idem.Serve run charges.Daily"
	}
	if r.Ended != nil {
		at, text = *r.Ended, "the last run came to its end at "
	}
	text += at.UTC().Format(time.DateTime + " MST")
	switch n := int64(len(r.Failed)); {
	case n > 0:
		return n, fmt.Sprintf("%d charges could not be copied or applied, the first is %s: see the errors in this application's log, and put right what they say; they are read again each day", n, r.Failed[0]), nil
	case r.Now.Sub(at) > overdue:
		return 1, text + ": " + next, nil
	}
	return 0, text, nil
}
