package charges

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
)

// Daily calls [Reconcile] once a day, and once a week with the cards whose money is to come. Give it to [idem.Serve]:
//
//	err := idem.Serve(ctx, server, inbox, &charges.Daily{Client: client, DB: pool, Apply: changed})
//
// Of many processes, one at a time reads an account. The first run begins 14 days back, each other one a day before the last one began.
type Daily struct {
	Client *asaas.Client
	DB     *pgxpool.Pool
	Scope  string // the account of the client's key; "" if there is one

	// Apply is the function of [Handler]. It must be set: what fills the table is [Reconcile], once.
	Apply func(ctx context.Context, tx pgx.Tx, c Change) error

	// Logger gets a line for each run, and for each charge that could not be copied. Default: slog.Default().
	Logger *slog.Logger
}

const (
	looks   = 10 * time.Minute // the pause between two looks at whether a run is due
	turn    = 30 * time.Minute // a process has an account that long; a run that takes longer goes on in the next turn
	hour    = time.Hour        // the pause after the calls of a run: 12,000 in 12 hours at most
	oldest  = 14 * 24 * time.Hour
	weekly  = 7*24*time.Hour - hour
	daily   = 24*time.Hour - hour
	overlap = 24 * time.Hour
)

// Run reconciles until ctx ends, and returns nil then. A fault of Asaas's or of the database is logged, and tried again.
func (d *Daily) Run(ctx context.Context) error {
	if d.Client == nil || d.DB == nil || d.Apply == nil {
		return errors.New("asaas/charges: Daily needs a Client, a DB and an Apply: set them")
	}
	for {
		pause, err := d.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			d.logger().ErrorContext(ctx, "charges could not be reconciled", "account", d.Scope, "again_in", pause, "error", err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
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
	s, taken, err := d.take(ctx)
	if err != nil || !taken {
		return looks, err
	}
	settings, due, err := d.settings(s)
	if err != nil || !due {
		return looks, errors.Join(err, d.end(ctx, `taken = now()`))
	}
	report, err := Reconcile(ctx, d.Client, d.DB, settings)
	d.tell(ctx, report)
	ctx = context.WithoutCancel(ctx)
	ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if report.Cursor != nil {
		cursor, fault := json.Marshal(report.Cursor)
		pause := cmp.Or(report.Again, hour)
		if err != nil {
			pause = looks
		}
		return pause, errors.Join(err, fault, d.end(ctx, `taken = now() + $2, cursor = $3`, pause, cursor))
	}
	if settings.Unsettled {
		return looks, d.end(ctx, `taken = now(), cursor = null, began = $2, unsettled = $2`, settings.Until)
	}
	return looks, errors.Join(err, d.end(ctx, `taken = now(), cursor = null, began = $2`, settings.Until))
}

// take gives this process a turn, unless another one has it.
func (d *Daily) take(ctx context.Context) (s state, taken bool, err error) {
	rows, err := d.DB.Query(ctx, `insert into asaas_charges_runs as r (scope, taken) values ($1, now() + $2)
		on conflict (scope) do update set taken = excluded.taken where r.taken <= now()
		returning began, unsettled, cursor, now()`, d.Scope, turn)
	if err == nil {
		s, err = pgx.CollectOneRow(rows, pgx.RowToStructByPos[state])
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, false, nil
	case err != nil:
		return s, false, fmt.Errorf("asaas/charges: looking for the last run: %w", err)
	}
	return s, true, nil
}

func (d *Daily) end(ctx context.Context, set string, args ...any) error {
	_, err := d.DB.Exec(ctx, `update asaas_charges_runs set `+set+` where scope = $1`, append([]any{d.Scope}, args...)...)
	if err != nil {
		return fmt.Errorf("asaas/charges: recording a run: %w", err)
	}
	return nil
}

// settings returns what the next run reads, and whether it is due.
func (d *Daily) settings(s state) (out Settings, due bool, err error) {
	out = Settings{Scope: d.Scope, Apply: d.Apply, Until: s.Now, Since: s.Now.Add(-oldest)}
	out.Unsettled = s.Unsettled == nil || s.Now.Sub(*s.Unsettled) >= weekly
	if s.Began != nil {
		out.Since = s.Began.Add(-overlap)
	}
	if s.Cursor != nil {
		out.Resume = new(Cursor)
		if err := json.Unmarshal(s.Cursor, out.Resume); err != nil {
			return out, false, fmt.Errorf("asaas/charges: the cursor of the last run is not of this version: %w", err)
		}
		out.Until = out.Resume.Until
		return out, true, nil
	}
	return out, s.Began == nil || s.Now.Sub(*s.Began) >= daily, nil
}

func (d *Daily) tell(ctx context.Context, r Report) {
	log := d.logger()
	for id, err := range r.Failed {
		log.ErrorContext(ctx, "a charge could not be reconciled", "account", d.Scope, "charge", id, "error", err)
	}
	log.InfoContext(ctx, "charges reconciled", "account", d.Scope, "read", r.Read, "changed", r.Changed, "failed", len(r.Failed),
		"gone", len(r.Gone), "calls", r.Calls, "to_be_continued", r.Cursor != nil)
}
