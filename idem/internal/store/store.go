// Package store holds the SQL of package idem, on plain row structs. It decides
// nothing: which statement runs when, and what its result means, is idem's.
//
// Statements come in two forms. A function that takes a *pgx.Batch queues its
// statement, to travel with others in one round trip; its results are set when
// the batch is read. A function that takes a [DB] executes its statement; an error of
// Query is left to the rows, which return it when they are read.
//
// Two rules keep lanes (the events of one entity, in order) from getting stuck.
// A pending row of idem_payloads with due_at null has an earlier row in its lane.
// Who takes a row out of its lane, or has it processed, changes that row first and
// executes [Promote] (or [PromoteHeld], where it may not be the first of its lane)
// last, in the same transaction. Who sets due_at to null holds the earlier row
// locked meanwhile. So a promotion sees all that was held back before it.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// ReadCommitted executes b in a transaction at Postgres's default isolation, whatever
// the session's is, in one round trip: what is to see the rows as they are, and does not
// want to be asked to run again.
func ReadCommitted(ctx context.Context, db DB, b *pgx.Batch) error {
	all := &pgx.Batch{}
	all.Queue("begin isolation level read committed")
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	all.Queue("commit")
	return db.SendBatch(ctx, all).Close()
}

// onDisk makes the commit of its statement's transaction wait for the disk
// where the database, the role or the session is set not to. It costs nothing
// where that is the default.
const onDisk = `case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end`

// PostponeTime is when an event is looked at again that waits for one that is being
// processed, or whose claim was released; postpone is the same in SQL.
const PostponeTime = 100 * time.Millisecond

const postpone = `interval '100 milliseconds'`

// order is the order of the rows of a lane.
const order = `coalesce(p.occurred_at, p.received_at), p.received_at, p.event`

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
