package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

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
	report, err := charges.Reconcile(ctx, p.client, pool, charges.Settings{
		Scope: p.scope, Since: p.since, Until: p.until, Calls: p.calls, Resume: p.resumeAt, Unsettled: true, DryRun: true,
		Apply: func(context.Context, pgx.Tx, charges.Change) error { return nil }, // without it the run would fill the table
		Changed: func(c charges.Change) {
			p.tell(reconciled{Step: "changed", Charge: c.After.ID, Before: worthOf(c.Before), After: worthOf(c.After)})
		},
	})
	if err != nil && report.Cursor == nil { // nothing was read
		return err
	}
	p.tellReport(report)
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

func (r reconciled) String() string {
	switch {
	case r.Step == "gone":
		return r.Charge + ": Asaas does not show it: it may have been removed, or the key is that of another account"
	case r.Step == "failed":
		return r.Charge + ": it cannot be copied: " + r.Error
	case r.Before != nil && *r.Before == *r.After:
		return fmt.Sprintf("%s: %s; its days, reference or fees differ", r.Charge, r.After)
	}
	return fmt.Sprintf("%s: %s -> %s", r.Charge, r.Before, r.After)
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

func (e end) String() string {
	text := fmt.Sprintf("%s: %d charges read with %d calls; %d would change, %d gone, %d failed; nothing was changed",
		e.Step, e.Read, e.Calls, e.Changed, e.Gone, e.Failed)
	if e.SecondsToWait > 0 {
		text += fmt.Sprintf("; Asaas wants to be left alone for %s", time.Duration(e.SecondsToWait)*time.Second)
	}
	return text
}

// tellReport prints what is left to say at the end of a run.
func (p *program) tellReport(r charges.Report) {
	for _, id := range r.Gone {
		p.tell(reconciled{Step: "gone", Charge: id})
	}
	for _, id := range slices.Sorted(maps.Keys(r.Failed)) {
		p.tell(reconciled{Step: "failed", Charge: id, Error: r.Failed[id].Error()})
	}
	last := end{"done", r.Read, r.Changed, len(r.Gone), len(r.Failed), r.Calls, r.Cursor, int64(r.Again / time.Second)}
	if r.Cursor != nil {
		last.Step = "paused"
	}
	p.tell(last)
	if r.Cursor == nil || p.json {
		return
	}
	cursor, _ := json.Marshal(r.Cursor) // times and texts
	flags := []string{"-resume-at '" + string(cursor) + "'"}
	if p.scope != "" && !p.listed.isAny { // else -account says it
		scope := p.scope
		if strings.ContainsFunc(scope, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
		}) {
			scope = "'" + strings.ReplaceAll(scope, "'", `'\''`) + "'"
		}
		flags = append([]string{"-scope " + scope}, flags...)
	}
	p.tell(advice{Next: p.typed("reconcile", flags...)})
}
