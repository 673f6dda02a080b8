// Package store holds the SQL of package idem, on plain row structs. It decides
// nothing: the order of statements, and the meaning of their results, are idem's.
//
// Statements come in two forms. A function that takes a *pgx.Batch queues its
// statement, to travel with others in one round trip; its results are set when
// the batch is read. A function that takes a [DB] executes its statement; an error of
// Query is left to the rows, which return it when they are read.
//
// # Lanes
//
// A lane is the events of one entity that are pending or parked, in order. The
// first of them is processed, or is parked and holds the others. A row with a lane that
// is null holds nothing and waits for nothing that comes later: it is retrying,
// unhandled, or parked where parked events are passed.
//
// An event that waits in a lane is pending, which workers process, or held: parked for no
// other reason than that it waits, where there were no workers. Its due_at is null.
// That of a parked event that is not held is always null.
//
// Two rules keep lanes from getting stuck. A transaction that takes a row out of its lane, or has
// it processed, changes that row first and promotes last, in the same transaction.
// A transaction that lets a row wait (sets its due_at to null, or inserts it so) holds the earlier
// row locked meanwhile, if only for share. So a promotion sees all that waits.
//
// There are three promotions. [Promote] is for a transaction that takes out the first of a lane,
// [PromoteHeld] for one that may take out another one, and [PromoteStuck] looks for events that
// wait for nothing. An event that they make due is claimed by workers if it is pending,
// and found by [FindHeld] if it is held; [Adopt] makes the latter pending.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Event is an event as its rows have it.
type Event struct {
	Source, Scope, ID string
	Type, Key         string
	OccurredAt        time.Time // zero when the provider did not say
	Payload           []byte
}

// The states of a row of idem_events.
const (
	Done      = "done"
	Pending   = "pending"
	Retrying  = "retrying"
	Unhandled = "unhandled"
	Parked    = "parked"
	Discarded = "discarded"
)

// ReadCommitted executes b in a transaction at Postgres's default isolation, not
// the session's, in one round trip: for statements that are to see the rows as they are, and do not
// want to be asked to run again. db must not be in a transaction.
func ReadCommitted(ctx context.Context, db DB, b *pgx.Batch) error {
	all := &pgx.Batch{}
	all.Queue("begin isolation level read committed")
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	all.Queue("commit")
	err := db.SendBatch(ctx, all).Close()
	if conn, ok := db.(*pgxpool.Conn); err != nil && ok && conn.Conn().PgConn().TxStatus() == 'E' {
		_, _ = conn.Exec(ctx, "rollback") // the pool closes a connection in a failed transaction
	}
	return err
}

// readCommitted is [ReadCommitted] for one statement. read gets its rows.
func readCommitted(ctx context.Context, db DB, sql string, args []any, read func(pgx.Rows) error) error {
	b := &pgx.Batch{}
	b.Queue(sql, args...).Query(read)
	return ReadCommitted(ctx, db, b)
}

// onDisk makes the commit of its statement's transaction wait for the disk
// where the database, the role or the session is set not to. It costs nothing
// where that is the default.
const onDisk = `case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end`

// PostponeTime is when an event is looked at again that waits for one that is being
// processed, or was claimed, and not processed; postpone is the same in SQL.
const PostponeTime = 100 * time.Millisecond

const postpone = `interval '100 milliseconds'`

// order is the order of the rows of a lane.
const order = `coalesce(p.occurred_at, p.received_at), p.received_at, p.event`

// isEarlier finds the events of lane $5 that are before an event $1 of the time $6 that is
// stored now. An event does not wait for itself: the insert waits for its attempt.
const isEarlier = `p.lane = $5 and p.event <> $1 and (` + order + `) < (coalesce($6, now()), now(), $1)`

// earlier is the first event of lane $5, if it is before an event $1 of the time $6 that is
// stored now: the event that it has to wait for, and the state that it waits in. It is locked, see the
// package comment; while it is being processed, that is waited for.
const earlier = `
	select p.event, substring(p.event from '^[^/]*/[^/]*/(.*)$') as id,
		case (select e.state from idem_events e where e.event = p.event) when 'pending' then 'pending' else 'parked' end as state
	from idem_payloads p
	where ` + isEarlier + `
	order by ` + order + ` limit 1 for share`

// hash is the short hash of a body: for people to notice that two deliveries
// with one id differ. It is of the bytes as received, so a body that a provider
// formats anew differs, too.
func hash(body []byte) int64 {
	sum := sha256.Sum256(body)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
