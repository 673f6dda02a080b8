package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pause is a person's decision that no event of a type and an entity begins until a time.
type Pause struct {
	Type, Key string // "" is every type, every entity
	At, Until time.Time
	Actor     string
	Reason    string
}

// inEffect is the condition of pauses x that have not ended.
const inEffect = `x.ended_at is null and x.until > now()`

// pausedUntil returns, in SQL, the time until which an event is paused; null if it is not.
func pausedUntil(source, eventType, key string) string {
	return `(select max(x.until) from idem_pauses x
	where x.source = ` + source + ` and x.type in ('', ` + eventType + `) and x.key in ('', ` + key + `) and ` + inEffect + `)`
}

// BeginPause pauses the events of a type and an entity for d, in place of the pause of the same that is in effect. It
// returns the end.
func BeginPause(ctx context.Context, tx pgx.Tx, source string, p Pause, d time.Duration) (until time.Time, err error) {
	const begin = `
insert into idem_pauses (source, type, key, until, actor, reason) values ($1, $2, $3, now() + $4::interval, $5, $6)
on conflict (source, type, key, until) do update set ended_at = null
returning until`
	if _, err := EndPause(ctx, tx, source, p); err != nil {
		return until, err
	}
	err = tx.QueryRow(ctx, begin, source, p.Type, p.Key, d, p.Actor, p.Reason).Scan(&until)
	return until, err
}

// EndPause ends the pause of a type and an entity, and makes the events due that it has put off. It reports whether
// there was one. A claim that began before may put off more: see [WakePaused].
func EndPause(ctx context.Context, tx pgx.Tx, source string, p Pause) (ended bool, err error) {
	const end = `
update idem_pauses x set ended_at = now() where x.source = $1 and x.type = $2 and x.key = $3 and ` + inEffect
	tag, err := tx.Exec(ctx, end, source, p.Type, p.Key)
	if err == nil {
		_, err = WakePaused(ctx, tx, source)
	}
	return tag.RowsAffected() > 0, err
}

// WakePaused makes events due that a pause has put off which was ended since, but for those that others have locked. It
// returns their number. It forgets pauses that are over.
func WakePaused(ctx context.Context, db DB, source string) (n int64, err error) {
	const wake = `
update idem_payloads set due_at = now() where event in (
	select p.event from idem_payloads p join idem_pauses x on p.due_at = x.until
	where x.source = $1 and x.ended_at is not null and p.source = $1 and p.due_at > now()
	for update of p skip locked)`
	const forget = `delete from idem_pauses where source = $1 and until < now()`
	b := &pgx.Batch{}
	b.Queue(wake, source).Exec(func(tag pgconn.CommandTag) error { n = tag.RowsAffected(); return nil })
	b.Queue(forget, source)
	err = db.SendBatch(ctx, b).Close()
	return n, err
}

// ListPauses returns the pauses of a source that are in effect, the oldest first.
func ListPauses(ctx context.Context, db DB, source string) ([]Pause, error) {
	const list = `select type, key, at, until, actor, reason from idem_pauses x where source = $1 and ` + inEffect + ` order by at, type, key`
	rows, _ := db.Query(ctx, list, source)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Pause])
}

// CountPaused counts the pending events of a type and an entity.
func CountPaused(ctx context.Context, db DB, source string, p Pause) (n int64, err error) {
	const count = `
select count(*) from idem_payloads p join idem_events e using (event)
where p.source = $1 and e.state = 'pending' and $2 in ('', e.type) and $3 in ('', e.key)`
	err = db.QueryRow(ctx, count, source, p.Type, p.Key).Scan(&n)
	return n, err
}

// FindPaused returns those of some events that are paused.
func FindPaused(ctx context.Context, db DB, source string, keys []string) (paused []string, err error) {
	find := `
select event from idem_events e where event = any ($2) and ` + pausedUntil("$1", "e.type", "e.key") + ` is not null order by event`
	rows, _ := db.Query(ctx, find, source, keys)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// PutOffPaused puts off events that are due and paused, among the first MaxPutOff of a source, and returns how many. It
// takes locks as [PutOff] does.
func PutOffPaused(ctx context.Context, db DB, source string) (n int, err error) {
	putOff := `
with due as materialized (
	select event from idem_payloads where source = $1 and due_at <= now() order by due_at limit $2
), paused as materialized (
	select e.event, ` + pausedUntil("$1", "e.type", "e.key") + ` as until
	from due join idem_events e using (event)
	where e.state = 'pending' and e.claimed_by is null
	for update of e skip locked
)
update idem_payloads p set due_at = paused.until from paused
where p.event = paused.event and paused.until is not null and p.due_at <= now()`
	b := &pgx.Batch{}
	b.Queue(claimSettings)
	b.Queue(putOff, source, MaxPutOff).Exec(func(tag pgconn.CommandTag) error {
		n = int(tag.RowsAffected())
		return nil
	})
	err = ReadCommitted(ctx, db, b)
	return n, err
}
