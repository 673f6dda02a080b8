package charges

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Filled records that the account's table is complete since a day, by the calendar of Brasília: of the charges made on
// that day or later, other programs have booked only those that have a row. The first event of an older charge without
// a row is refused: another program may have booked a part of it. Use the zero time for an account of which no other
// program has ever booked a charge, and in tests.
//
// Reconcile without a function calls Filled once it has made the rows. If an earlier day is recorded, that day stays.
func Filled(ctx context.Context, db DB, scope string, since time.Time) error {
	const earlier = `insert into asaas_charges_since as s (scope, since, others) values ($1, least($2, ` + today + `), false)
		on conflict (scope) do update set since = least(excluded.since, s.since), others = false`
	if err := exec(ctx, db, earlier, scope, dayOf(since)); err != nil {
		return fmt.Errorf("asaas/charges: recording since when the table is complete: %w", err)
	}
	return nil
}

// Apart records that the charges of an account may have the same ids as another account's, as the sandbox's beside
// production in one database. Call it at every start, before the first event of the account comes. The other accounts
// share no ids, so [Copy] refuses a charge of theirs that comes under a second scope.
func Apart(ctx context.Context, db DB, scope string) error {
	if scope == "" {
		return errors.New("asaas/charges: the account to set apart has no scope: give the sandbox's account a scope")
	}
	is, err := one[bool](ctx, db, `select exists (select from asaas_charges_since where scope = $1 and apart)`, scope)
	if err == nil && !is {
		err = begin(ctx, db, func(tx pgx.Tx) error {
			// A charge that is being copied would get a row that is not apart, and at its next event a second one.
			if _, err := tx.Exec(ctx, `lock table asaas_charges in share row exclusive mode`); err != nil {
				return err
			}
			const apart = `insert into asaas_charges_since as s (scope, since, apart) values ($1, ` + today + `, true)
				on conflict (scope) do update set apart = true`
			if _, err := tx.Exec(ctx, apart, scope); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `update asaas_charges set apart = scope where scope = $1 and apart = ''`, scope)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("asaas/charges: setting an account apart: %w", err)
	}
	return nil
}

// account holds the columns of asaas_charges_since for one account.
type account struct {
	since *time.Time // the table is complete; nil for an account without a row
	seen  *time.Time // its first charge was copied; nil for one without
	id    *string    // account.id of its events; nil until one has it

	others *bool // other handlers have booked its payments, and the table is not filled; nil until that is known
}

const today = `(now() at time zone interval '-3 hours')::date`

// admit returns an error for a charge that must not be copied: it is another account's, or others may have booked it.
func (c *Charge) admit(ctx context.Context, tx pgx.Tx, in account, how copying, inserted bool) error {
	if in.seen == nil || in.id == nil && how.account != "" {
		err := see(ctx, tx, c.Scope, c.Event, how.account)
		if err == nil {
			err = tx.QueryRow(ctx, `select since, account, others from asaas_charges_since where scope = $1`, c.Scope).Scan(&in.since, &in.id, &in.others)
		}
		if err != nil {
			return fmt.Errorf("asaas/charges: recording the account of %s: %w", c.ID, err)
		}
	}
	switch {
	case how.account != "" && how.account != *in.id:
		return idem.NoRetry(fmt.Errorf("asaas/charges: the event of %s is of Asaas's account %s, and the events of the scope %q so far are of the account %s: "+
			"nothing is booked. Give each account a token and a scope of its own (docs/recipes.md), and discard the event; if the account "+
			"was exchanged for another one, set account to null in asaas_charges_since, and replay it", c.ID, how.account, c.Scope, *in.id))
	case how.sums && in.others != nil && *in.others:
		return idem.NoRetry(fmt.Errorf("asaas/charges: other handlers have booked payments of the account %q, and the table lacks their charges, so that the sum of an order "+
			"would be too small. Run those handlers, beside charges.Handler(nil), until charges.Reconcile has filled the table, and replay the event: docs/import.md. "+
			"If they have booked none, run %s once, and replay it", c.Scope, filledCommand(c.Scope)))
	case !inserted || how.filling:
		return nil
	case !c.madeSince(*in.since):
		return idem.NoRetry(c.tooOld(*in.since))
	case how.sums,
		in.since.Year() <= 1, // no other program has ever booked one
		how.made && string(c.Created) > in.since.Format(time.DateOnly): // it is the first of its events
		return nil
	}
	done, err := how.hasDone(ctx, tx, c)
	if err != nil {
		return fmt.Errorf("asaas/charges: looking for events of %s: %w", c.ID, err)
	}
	if done {
		return idem.NoRetry(c.unknown("has a done event "))
	}
	return nil
}

// see records the first charge of an account, and the id that its events have, unless there is one.
//
// The first account of a new shop begins with the table; any other one with its first charge.
func see(ctx context.Context, tx pgx.Tx, scope, event, id string) error {
	const first = `insert into asaas_charges_since as s (scope, since, seen, account, others)
		select $1, case when $3 or exists (select from asaas_charges_since where seen is not null) then greatest(complete, ` + today + `) else complete end,
			now(), nullif($2, ''), $3
		from asaas_charges_migrations where version = 1
		on conflict (scope) do update set seen = coalesce(s.seen, excluded.seen), account = coalesce(s.account, excluded.account),
			others = coalesce(s.others, excluded.others)`
	from, until := keys(scope)
	booked := false // by other handlers; an import may know no more than the id of what they did
	has, err := hasEvents(ctx, tx)
	if err == nil && has {
		booked, err = one[bool](ctx, tx, `select exists (select from idem_events
			where event >= $1 and event < $2 and event <> $1 || $3 and state = 'done' and (type = '' or type like 'PAYMENT\_%'))`, from, until, event)
	}
	if err == nil {
		_, err = tx.Exec(ctx, first, scope, id, booked)
	}
	return err
}

// hasEvents reports whether the database has the table of events: a program that only reads has none.
func hasEvents(ctx context.Context, db DB) (bool, error) {
	return one[bool](ctx, db, `select to_regclass('idem_events') is not null`)
}

// keys returns the first possible row key of the account's events in idem_events, and the first key after them. The
// scope is escaped in a row key.
func keys(scope string) (first, after string) {
	account := "asaas/" + url.PathEscape(scope)
	return account + "/", account + "0"
}

// hasDone reads all of the account's events, because no index has their charge. It is called for a new row, unless
// orders are set or the event is the charge's creation.
func hasDone(ctx context.Context, tx pgx.Tx, c *Charge) (bool, error) {
	has, err := hasEvents(ctx, tx)
	if err != nil || !has {
		return false, err
	}
	first, after := keys(c.Scope)
	return one[bool](ctx, tx, `select exists (select from idem_events
		where event >= $1 and event < $2 and event <> $1 || $3 and key = $4 and state = 'done')`, first, after, c.Event, c.ID)
}

// madeSince reports whether the charge was made since the table is complete.
func (c *Charge) madeSince(since time.Time) bool {
	return since.Year() <= 1 || c.Created != "" && string(c.Created) >= since.Format(time.DateOnly)
}

func (c *Charge) tooOld(since time.Time) error {
	return c.unknown(fmt.Sprintf("was made on %s, the table is complete since %s, ", cmp.Or(string(c.Created), "an unknown day"), since.Format(time.DateOnly)))
}

func (c *Charge) unknown(why string) error {
	return fmt.Errorf("asaas/charges: %s of the account %q %sand its row is missing: what another program has booked "+
		"of it is not known. If none has, run %s once, and replay the event. Otherwise run the handlers that booked it, "+
		"beside charges.Handler(nil), until charges.Reconcile has filled the table: docs/import.md", c.ID, c.Scope, why, filledCommand(c.Scope))
}

// filledCommand calls Filled for an account of which no other program has booked a charge.
func filledCommand(scope string) string {
	if scope == "" {
		return "asaas-queue filled"
	}
	return "asaas-queue filled -scope " + terminal.Quoted(scope)
}

// elsewhere returns the error of a charge that has a row under another scope.
func (c *Charge) elsewhere(ctx context.Context, tx pgx.Tx) error {
	other, err := one[string](ctx, tx, `select scope from asaas_charges where id = $1 and scope <> $2 order by scope limit 1`, c.ID, c.Scope)
	if err != nil {
		return fmt.Errorf("asaas/charges: copying %s: its row has changed its scope just now: %w", c.ID, err)
	}
	return idem.NoRetry(fmt.Errorf("asaas/charges: %s came under the scope %q, and is booked under %q: it is not booked again. If the account has a new scope, "+
		"stop its processes, run idem rescope -source asaas -account %[4]s -to-account %[5]s, and replay the event; if a setting names the wrong "+
		"scope, correct it, and discard the event; if the two are the sandbox and production, call charges.Apart", c.ID, c.Scope, other, terminal.Quoted(other), terminal.Quoted(c.Scope)))
}

// settingError is the error of a wrong setting.
type settingError string

func (e settingError) Error() string { return string(e) }

// errNoScope is the error of a missing Scope.
const errNoScope settingError = "asaas/charges: the accounts of this database have scopes, and Scope is empty: set it, as in the Credentials of the account"

// checkScope returns an error if payments have come under other scopes only: with a missing or misspelled name, their
// charges would be booked again.
func checkScope(ctx context.Context, db DB, scope string) error {
	known, others, err := scopes(ctx, db, scope)
	switch {
	case err != nil:
		return fmt.Errorf("asaas/charges: looking for the scopes of the accounts: %w", err)
	case known || len(others) == 0:
		return nil
	case scope == "":
		return errNoScope
	}
	return settingError(fmt.Sprintf("asaas/charges: no payment has come under the scope %q, and some have under %q: correct Scope. The first event of a new account "+
		"makes its scope known, and so does charges.Filled(ctx, pool, %[1]q, time.Now())", scope, others))
}

// scopes reports whether a scope is known, and returns some others under which payments have come.
func scopes(ctx context.Context, db DB, scope string) (known bool, others []string, err error) {
	const seenOnes = `select scope, seen is not null from asaas_charges_since where scope = $1 or seen is not null
		order by scope <> $1, scope limit 4`
	rows, _ := db.Query(ctx, seenOnes, scope)
	var name string
	var seen bool
	_, err = pgx.ForEachRow(rows, []any{&name, &seen}, func() error {
		if name != scope {
			others = append(others, name)
			return nil
		}
		known = seen || scope != "" // somebody has given Filled this name
		return nil
	})
	if err != nil || known {
		return known, nil, err
	}
	has, err := hasEvents(ctx, db)
	if err != nil || !has {
		return false, others, err
	}
	first, after := keys(scope)
	const find = `select coalesce((select split_part(event, '/', 2) from idem_events
		where event >= $1 and event < $2 and state = 'done' and type like 'PAYMENT\_%' limit 1), '/')`
	for _, part := range [][2]string{{first, after}, {"asaas/", first}, {after, "asaas0"}} {
		name, err := one[string](ctx, db, find, part[0], part[1])
		switch {
		case err != nil:
			return false, nil, err
		case name == "/": // none
		case part[0] == first:
			return true, nil, nil
		case len(others) == 0:
			name, _ = url.PathUnescape(name)
			others = append(others, name)
		}
	}
	return false, others, nil
}
