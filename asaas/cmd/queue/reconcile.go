package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/internal/command"
)

// reconcile prints what a run of charges.Reconcile would change, and changes nothing.
func (p *program) reconcile(ctx context.Context) error {
	if p.since.IsZero() && p.resumeAt == nil {
		return command.Usage("-since is not given: give the time before which every event is known to have arrived")
	}
	pool, err := p.charges(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	var fault error
	report, err := charges.Reconcile(ctx, p.client, pool, charges.Settings{
		Scope: p.scope, Since: p.since, Until: p.until, Calls: p.calls, Resume: p.resumeAt, Unsettled: true, DryRun: true,
		Apply:   func(context.Context, pgx.Tx, charges.Change) error { return nil }, // without it the run would fill the table
		Changed: func(c charges.Change) { fault = cmp.Or(fault, p.tellChange(c)) },
	})
	if err != nil && report.Cursor == nil { // nothing was read
		return err
	}
	if fault = cmp.Or(fault, p.tellReport(report)); fault != nil {
		return fault
	}
	switch {
	case err != nil:
		return err
	case report.Cursor != nil:
		return command.Said(command.Failed)
	case report.Changed+len(report.Gone)+len(report.Failed) > 0:
		return errAttention
	}
	return nil
}

// charges returns the database with the charge table.
func (p *program) charges(ctx context.Context) (*pgxpool.Pool, error) {
	address := cmp.Or(p.database, p.getenv("DATABASE_URL"))
	if address == "" {
		return nil, command.Usage("DATABASE_URL is not set: set it to the application's database, which has the charge table")
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return nil, errNoDatabase
	}
	var has bool
	if err = pool.QueryRow(ctx, `select to_regclass('asaas_charges') is not null`).Scan(&has); err == nil && !has {
		err = errors.New("the database has no table asaas_charges: the application makes it with charges.Migrate")
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// worth is the money of a charge in a row, as JSON.
type worth struct {
	Status   asaas.PaymentStatus `json:"status"`
	Deleted  bool                `json:"deleted"`
	Paid     asaas.Money         `json:"paid"`
	Received asaas.Money         `json:"received"`
}

// worthOf returns nil for a charge without a row.
func worthOf(c charges.Charge) *worth {
	if c.Status == "" {
		return nil
	}
	return &worth{c.Status, c.Deleted, c.Paid, c.Received}
}

func (w *worth) String() string {
	if w == nil {
		return "no row"
	}
	text := fmt.Sprintf("%s, paid %s, received %s", w.Status, w.Paid, w.Received)
	if w.Deleted {
		text += ", removed"
	}
	return text
}

// reconciled is a line of JSON about a charge: changed, gone or failed.
type reconciled struct {
	Step   string `json:"step"`
	Charge string `json:"charge"`
	Before *worth `json:"before,omitempty"` // absent for a charge without a row
	After  *worth `json:"after,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (p *program) tellChange(c charges.Change) error {
	before, after := worthOf(c.Before), worthOf(c.After)
	if p.json {
		return p.printLine(reconciled{Step: "changed", Charge: c.After.ID, Before: before, After: after})
	}
	text := fmt.Sprintf("%s: %s -> %s", c.After.ID, before, after)
	if before != nil && *before == *after {
		text = fmt.Sprintf("%s: %s; its days, reference or fees differ", c.After.ID, after)
	}
	_, err := fmt.Fprintln(p.out, command.Text("%s", text))
	return err
}

// end is the last line of JSON: done or paused.
type end struct {
	Step    string          `json:"step"`
	Read    int             `json:"read"`
	Changed int             `json:"changed"`
	Gone    int             `json:"gone"`
	Failed  int             `json:"failed"`
	Calls   int             `json:"calls"`
	Cursor  *charges.Cursor `json:"cursor,omitempty"`
	// Until the next call may be made; absent if Asaas does not say.
	SecondsToWait int64 `json:"seconds_to_wait,omitempty"`
}

// tellReport prints what is left to say at the end of a run.
func (p *program) tellReport(r charges.Report) error {
	var lines []reconciled
	for _, id := range r.Gone {
		lines = append(lines, reconciled{Step: "gone", Charge: id})
	}
	for _, id := range slices.Sorted(maps.Keys(r.Failed)) {
		lines = append(lines, reconciled{Step: "failed", Charge: id, Error: r.Failed[id].Error()})
	}
	last := end{"done", r.Read, r.Changed, len(r.Gone), len(r.Failed), r.Calls, r.Cursor, int64(r.Again / time.Second)}
	if r.Cursor != nil {
		last.Step = "paused"
	}
	if !p.json {
		return p.printReport(lines, last)
	}
	for _, line := range lines {
		if err := p.printLine(line); err != nil {
			return err
		}
	}
	return p.printLine(last)
}

func (p *program) printReport(lines []reconciled, last end) error {
	for _, line := range lines {
		text := line.Charge + ": Asaas does not show it: it may have been removed, or the key is that of another account"
		if line.Error != "" {
			text = line.Charge + ": it cannot be copied: " + line.Error
		}
		fmt.Fprintln(p.out, command.Text("%s", text))
	}
	text := fmt.Sprintf("%s: %d charges read with %d calls; %d would change, %d gone, %d failed; nothing was changed",
		last.Step, last.Read, last.Calls, last.Changed, last.Gone, last.Failed)
	if last.SecondsToWait > 0 {
		text += fmt.Sprintf("; Asaas wants to be left alone for %s", time.Duration(last.SecondsToWait)*time.Second)
	}
	if _, err := fmt.Fprintln(p.out, text); err != nil || last.Cursor == nil {
		return err
	}
	cursor, err := json.Marshal(last.Cursor)
	if err != nil {
		return err
	}
	account := ""
	if p.scope != "" {
		account = "-scope " + p.scope + " "
	}
	return p.advise("reconcile " + account + "-resume-at '" + string(cursor) + "'")
}
