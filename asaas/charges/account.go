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

// askForAccount returns an error if the client's key is another account's than the scope's: its charges would pay our
// orders.
//
// Asaas does not document that the account of a key and the account.id of an event are the same name. If they differ,
// askForAccount asks for charges from the scope's events: the key of another account finds none.
func (r *run) askForAccount(ctx context.Context) error {
	status, err := call(ctx, r, func() (*asaas.AccountStatus, error) { return r.client.AccountStatus(ctx) })
	if isRefusal(err) { // the key may lack the permission
		status, err = new(asaas.AccountStatus), nil
	}
	if err != nil {
		return err
	}
	var account, key string
	rows, _ := r.db.Query(ctx, `select coalesce(account, ''), coalesce(key, '') from asaas_charges_since where scope = $1`, r.Scope)
	if _, err = pgx.ForEachRow(rows, []any{&account, &key}, func() error { return nil }); err != nil {
		return err
	}
	if id := status.ID; id != "" && (id == account || id == key) {
		return nil
	}
	charges, err := r.brought(ctx)
	if err != nil {
		return err
	}
	for _, charge := range charges {
		_, err := call(ctx, r, func() (*asaas.Payment, error) { return r.client.Payment(ctx, charge) })
		if isRefusal(err) {
			continue
		}
		if err == nil && !r.DryRun && status.ID != "" {
			err = exec(ctx, r.db, `update asaas_charges_since set key = $2 where scope = $1`, r.Scope, status.ID)
		}
		return err
	}
	if len(charges) == 0 && (status.ID == "" || account == "" && key == "") { // nothing to compare with
		const of = `select coalesce(min(scope), $1) from asaas_charges_since where scope <> $1 and $2 <> '' and $2 in (account, key)`
		other, err := one[string](ctx, r.db, of, r.Scope, status.ID)
		if err == nil && other != r.Scope {
			err = fmt.Errorf("the API key is that of the account of the scope %q, and Scope is %q, under which no event has come: "+
				"correct the key or Scope", other, r.Scope)
		}
		return err
	}
	remedy := "correct the key or Scope"
	if account == "" && key == "" {
		remedy += "; if they are of asaas-fake, the first paid charge of the account settles it"
	}
	return fmt.Errorf("the API key is that of another account at Asaas, %s: the events of the scope %q are of the account %s, and the key shows none of its "+
		"charges %s: %s", cmp.Or(status.ID, "which has no id"), r.Scope, cmp.Or(account, "which has no id"), charges, remedy)
}

// brought returns some charges of the scope that events have brought, and that cannot be removed, if there are any.
func (r *run) brought(ctx context.Context) ([]string, error) {
	rows, _ := r.db.Query(ctx, `select id from asaas_charges where scope = $1 and event <> '' and not deleted
		order by paid > 0 desc, at desc limit 3`, r.Scope)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// isRefusal reports whether Asaas does not show something for this key.
func isRefusal(err error) bool {
	e, ok := errors.AsType[*asaas.APIError](err)
	return ok && (e.Status == http.StatusForbidden || e.Status == http.StatusNotFound)
}

// dated notes the time of each answer, by the server that gave it.
type dated struct {
	http.RoundTripper
	at time.Time // zero where the last answer has none
}

func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	d.at = time.Time{}
	answer, err := d.RoundTripper.RoundTrip(r)
	if err == nil {
		d.at, _ = http.ParseTime(answer.Header.Get("Date"))
	}
	return answer, err
}

// listen has r note the times of the client's answers.
func (r *run) listen() {
	r.answers = &dated{RoundTripper: r.client.Transport}
	if r.answers.RoundTripper == nil {
		r.answers.RoundTripper = http.DefaultTransport
	}
	own := *r.client
	own.Transport = r.answers
	r.client = &own
}

// readAt returns the time of the last answer. asked is the time of its question, by this machine.
func (r *run) readAt(asked time.Time) (time.Time, error) {
	at := r.answers.at
	if at.IsZero() {
		return asked, nil
	}
	return at, disagree("Asaas", at, asked)
}

// tellTheTime returns an error if the clocks of this machine and of the database disagree.
func (r *run) tellTheTime(ctx context.Context) error {
	asked := time.Now()
	at, err := one[time.Time](ctx, r.db, `select clock_timestamp()`)
	if err != nil {
		return err
	}
	return disagree("the database", at, asked)
}

// disagree returns an error if another clock's time, at, differs from this machine's by more than half of lag: a
// reading counts as older than it is by lag. asked is the time of the question, by this machine.
func disagree(whose string, at, asked time.Time) error {
	if at.After(asked.Add(-lag/2)) && at.Before(time.Now().Add(lag/2)) {
		return nil
	}
	return fmt.Errorf("the clocks disagree, it is %s on this machine and %s at %s: a charge that is read by a wrong clock hides the events that come after it; "+
		"set the clock that is wrong, and run again", asked.UTC().Format(time.DateTime), at.UTC().Format(time.DateTime), whose)
}
