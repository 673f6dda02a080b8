package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// locks finds sessions that others wait for. Where one keeps the tables locked now, nothing else is asked of them.
func (e *examination) locks(ctx context.Context) (found []Finding, err error) {
	err = store.AwaitTables(ctx, e.pool, "idem_", e.lock, true)
	locked, ok := errors.AsType[*store.LockedError](err)
	if e.locked = ok; !ok && err != nil {
		return nil, err
	}
	var by []store.Blocker
	if ok {
		by = locked.By
	}
	if len(by) == 0 {
		err = e.within(ctx, func() (err error) {
			by, err = store.FindBlockers(ctx, e.db, e.blocking)
			return err
		})
	}
	if ok && len(by) == 0 {
		return []Finding{{
			Severity: Error, Problem: "the tables were locked, by sessions that have ended meanwhile", Evidence: locked.Unwrap().Error(), Command: "idem doctor",
		}}, nil
	}
	for _, b := range by {
		f := Finding{
			Severity: Error, Problem: "a session keeps " + b.Table + " locked: deliveries, workers and this command wait for it",
			Evidence: b.String(), Remedy: "wait for its end if somebody needs it, or end it", Command: b.Remedy(),
		}
		if !ok && b.Waiting == 0 {
			f.Problem = "a session keeps " + b.Table + " from being written to"
		}
		if b.Waiting > 0 {
			f.Evidence += ", " + counted(b.Waiting, "session waits", "sessions wait")
		}
		found = append(found, f)
	}
	return found, err
}

// triggers finds that an event cannot be stored and done, because of a trigger or of something else that was
// added to the tables.
func (e *examination) triggers(ctx context.Context) ([]Finding, error) {
	err := e.try(ctx, `
insert into idem_events (event, type, key, state) values ('//doctor', '', '', 'pending');
insert into idem_payloads (event, source, received_at, body) values ('//doctor', '//doctor', now(), '');
update idem_events set state = 'done' where event = '//doctor';
delete from idem_payloads where event = '//doctor';
delete from idem_events where event = '//doctor'`)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || isOfOthers(refused) || e.explains(err) {
		return nil, nil // a connection that is lost is found by the next check
	}
	type trigger struct{ Table, Name, Function string }
	const list = `
select c.relname::text, quote_ident(t.tgname), p.proname::text from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
where c.oid in (to_regclass('idem_events'), to_regclass('idem_payloads')) and not t.tgisinternal and t.tgenabled in ('O', 'A') order by 1, 2`
	triggers, err := all[trigger](ctx, e, list)
	f := Finding{
		Severity: Error, Problem: "no event can be stored: Postgres refuses it", Evidence: refused.Message + ", " + refused.Code,
		Remedy: "somebody has added to the tables what refuses it; take it away",
	}
	for _, t := range triggers {
		if strings.Contains(refused.Where, t.Function) || len(triggers) == 1 {
			f.Problem = "no event can be stored: a trigger on " + t.Table + " refuses it"
			f.Remedy, f.Command = "", fmt.Sprintf("alter table %s disable trigger %s", t.Table, t.Name)
			f.Evidence += ", " + t.Name
			break
		}
	}
	return []Finding{f}, err
}

// isOfOthers reports whether a refusal is one that other checks explain: of rights, of a replica, of a lack of
// Postgres's relatives.
func isOfOthers(refused *pgconn.PgError) bool {
	class := refused.Code[:2]
	return class == "42" || class == "25" || class == "0A" || class == "57" || class == "55"
}

// try executes statements, and rolls them back.
func (e *examination) try(ctx context.Context, sql string) error {
	tx, err := e.db.Begin(ctx) // a savepoint
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	_, err = tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol) // which takes several statements
	return err
}
