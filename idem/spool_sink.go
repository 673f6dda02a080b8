package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/spool"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// inboxSink is the inbox of a spool, to which its events go.
type inboxSink struct{ inbox *Inbox }

func (s inboxSink) Decode(record []byte) (spool.Event, error) {
	e, at, err := wire.DecodeRecord(record)
	if name := s.inbox.source.Name(); err == nil && e.Source != name {
		err = fmt.Errorf("it is of another source than %s: give each inbox a directory of its own", name)
	}
	if limit := s.inbox.Retention; err == nil && limit > 0 && time.Since(at) > limit {
		err = errors.New("it is older than Retention: whether it was processed is forgotten")
	}
	return e, err
}

func (s inboxSink) Insert(ctx context.Context, events []spool.Event) ([]spool.Inserted, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	incoming := make([]store.Incoming, len(events))
	for n, e := range events {
		incoming[n] = e.(store.Incoming)
	}
	var results []result
	err := pgtx.Protect(func() (err error) { // hooks of the pool are the application's
		results, err = s.inbox.insert(ctx, incoming)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]spool.Inserted, len(events))
	for n, r := range results {
		out[n] = spool.Inserted{IsNew: r.outcome == Pending, Err: r.err}
	}
	return out, nil
}

func (s inboxSink) Meaning(err error) spool.Meaning {
	code := pgtx.SQLState(err)
	switch {
	case strings.Contains(err.Error(), closedPool):
		return spool.Closed
	case pgtx.Unavailable(err):
		return spool.Unavailable
	case pgtx.Held(err):
		return spool.Held
	case strings.HasPrefix(code, "22"), strings.HasPrefix(code, "23"), code == "54000": // its data, a constraint, the limit of an index
		return spool.Refused
	}
	return spool.Unclear
}

func (s inboxSink) Log(ctx context.Context, level slog.Level, message string, e spool.Event, err error, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("source", s.inbox.source.Name()))
	if e != nil {
		attrs = append(attrs, nameAttrs(Event(e.(store.Incoming).Event))...)
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", explain(err).Error()))
	}
	s.inbox.logAttrs(ctx, level, message, attrs)
}

// closedPool matches pgxpool's error after the application has closed the pool: the
// program ends, and the next one drains. The error itself is that of another module.
const closedPool = "closed pool"
