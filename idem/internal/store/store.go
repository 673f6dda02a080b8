// Package store holds the SQL of package idem, on plain row structs. It decides nothing: package idem orders
// the statements, and interprets their results.
//
// Statements come in two forms. A function that takes a *pgx.Batch queues its statement, to travel with
// others in one round trip; its results are set when the batch is read. A function that takes a [DB] executes
// its statement; an error of Query is ignored, since reading the rows returns it.
//
// # Lanes
//
// A lane is the events of one entity that are pending or parked, in order. The first of them is processed, or
// is parked and holds the others. A row whose lane is null holds no event and waits for none: it is unhandled,
// or parked where parked events are passed.
//
// An event is stored due, whatever its lane holds. A claim that finds it behind the first of its lane sets its
// due_at to null: it waits. The due_at of a parked event is always null.
//
// Two rules keep lanes from getting stuck. (1) A transaction that takes a row out of its lane, or processes
// its event, changes that row first and promotes last. (2) A transaction that lets a row wait holds a lock of
// the first row of the lane. So a promotion sees every waiting row.
//
// There are three promotions. [Promote] is for a transaction that takes out the first row of a lane,
// [PromoteWaiting] for a transaction that may take out another row, and [PromoteStuck] looks for events that
// wait for nothing.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
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
	OccurredAt        time.Time // zero if the provider gives none
	Payload           []byte
}

// The states of a row of idem_events.
const (
	Done      = "done"
	Pending   = "pending"
	Unhandled = "unhandled"
	Parked    = "parked"
	Discarded = "discarded"
)

// MaxName is the length in bytes of the longest scope, id, type and key that are
// stored. Providers use a fifth of it; Postgres refuses index entries that are
// ten times as long.
const MaxName = 255

// Nameable reports whether a text can be stored as an event's scope, id, type or key.
func Nameable(s string) bool {
	return len(s) <= MaxName && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

// RowKey names an event in one column: source/scope/id. A primary key of three
// columns costs every insert a fifth more.
func (e Event) RowKey() string {
	return e.Source + "/" + url.PathEscape(e.Scope) + "/" + e.ID
}

// Lane names the events that are processed in order with e: the events of its entity, or e alone if it has
// none. A lane of one event has a %/, which no escaped scope ends with: an entity may have the id of an
// event.
func (e Event) Lane() string {
	account := e.Source + "/" + url.PathEscape(e.Scope)
	if e.Key == "" {
		return account + "%/" + e.ID
	}
	return account + "/" + e.Key
}

// EventOf returns an event with the Source, Scope and ID of a row key.
func EventOf(key string) (e Event) {
	e.setRowKey(key)
	return e
}

// setRowKey sets the fields that a row key is made of.
func (e *Event) setRowKey(key string) {
	var rest, scope string
	e.Source, rest, _ = strings.Cut(key, "/")
	scope, e.ID, _ = strings.Cut(rest, "/")
	e.Scope = scope
	if unescaped, err := url.PathUnescape(scope); err == nil {
		e.Scope = unescaped
	}
}

// escaped returns scopes as they are in row keys; nil stays nil.
func escaped(scopes []string) []string {
	if scopes == nil {
		return nil
	}
	all := make([]string, len(scopes))
	for i, s := range scopes {
		all[i] = url.PathEscape(s)
	}
	return all
}

// sourcePrefix returns the prefix of the row keys and lanes of a source.
func sourcePrefix(source string) string { return source + "/" }

// rowLane is Lane in SQL, for the row e of idem_events.
const rowLane = `case e.key
	when '' then overlay(e.event placing '%' from length(substring(e.event from '^[^/]*/[^/]*')) + 1 for 0)
	else substring(e.event from '^[^/]*/[^/]*/') || e.key end`

// order is the order of the rows of a lane.
const order = `coalesce(p.occurred_at, p.received_at), p.received_at, p.event`

// ReadCommitted executes b in a transaction at Postgres's default isolation, not the session's, in one round
// trip: for statements that must see the rows as they are now, and must not fail with a serialization error.
// db must not be in a transaction.
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

// readCommitted is [ReadCommitted] for one statement. read reads its rows.
func readCommitted(ctx context.Context, db DB, sql string, args []any, read func(pgx.Rows) error) error {
	b := &pgx.Batch{}
	b.Queue(sql, args...).Query(read)
	return ReadCommitted(ctx, db, b)
}

// onDisk makes the commit of its statement's transaction wait for the disk where synchronous_commit is off
// for the database, the role or the session. It costs nothing by default.
const onDisk = `case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end`

// MaxError is the largest length in bytes of a stored error.
const MaxError = 1000

// Storable returns text with U+FFFD in place of bytes that Postgres refuses, cut to at most most bytes.
func Storable(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// Explain adds the remedy to errors that have one usual cause.
func Explain(err error) error {
	switch code := pgtx.SQLState(err); {
	case code == "42P01":
		return fmt.Errorf("the tables are missing: call idem.Migrate at start, with the same search_path (with goose: -table idem_goose_version): %w", err)
	case pgtx.RowLocked(err):
		return fmt.Errorf("another process is storing or processing the event, and its transaction does not end: %w", err)
	case errors.Is(err, pgtx.ErrUnknown):
		return fmt.Errorf("look at the events, and do it again if they are as they were: %w", err)
	case code == "" && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer of Postgres in time: it is unavailable, the pool is too small, or another process is processing the event: %w", err)
	}
	return err
}

// fitting calls f, which executes a statement with a text. Where the database's encoding is not UTF-8, it may lack
// characters of the text, and f is called again with ? in place of all that are not ASCII: a failure must be counted.
func fitting(text *string, f func(text *string) error) error {
	err := f(text)
	if text == nil || pgtx.SQLState(err) != "22P05" { // untranslatable_character
		return err
	}
	return f(new(strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, *text)))
}

// hash returns a short hash of a body, to notice that two deliveries with one id differ. It is a hash of the
// bytes as received: a body that a provider formats anew differs as well.
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

// orZero scans null as the zero time.
func orZero(t *time.Time) *zeronull.Timestamptz { return (*zeronull.Timestamptz)(t) }
