package idem

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// Filter chooses stored events. The zero value means all of the source's events
// that are unhandled or failed; each field that is set narrows it.
type Filter struct {
	States []State  // StateUnhandled, StateFailed
	Scopes []string // accounts
	Types  []string // the provider's event names
	IDs    []string // the provider's event ids
}

// Replayed counts what became of replayed events.
type Replayed struct {
	Handled   int // done now
	Failed    int // failed again; still kept, with the new error
	Unhandled int // no handler, or ignored: left as they are
}

// Replay works on events that were kept because no handler existed or because
// their work failed, oldest first, one after the other: call it after deploying
// the missing handler or the fix. Each event runs like a delivery, in a
// transaction of its own with the record that it is done, so that it is safe
// to replay while deliveries arrive and from several processes at once.
//
// A failing event does not stop the others; its error is stored, logged and
// observed. Replay returns an error when ctx ends or Postgres is away, together
// with what it did until then.
func (p *Processor) Replay(ctx context.Context, f Filter) (Replayed, error) {
	var total Replayed
	var after cursor
	for {
		page, err := p.stored(ctx, f, after)
		if err != nil {
			return total, fmt.Errorf("idem: reading the events to replay: %w", err)
		}
		for _, s := range page {
			if err := p.replay(ctx, s.event, &total); err != nil {
				return total, fmt.Errorf("idem: replay stopped at %s %s: %w", s.event.Type, s.event.ID, err)
			}
			after = s.cursor
		}
		if len(page) < replayPage {
			return total, nil
		}
	}
}

// replay runs one event. The error is one that would stop every other event.
func (p *Processor) replay(ctx context.Context, e Event, total *Replayed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch work, err := p.source.Route(e); {
	case errors.Is(err, ErrIgnored), err == nil && work == nil:
		total.Unhandled++
		return nil
	case err != nil: // it does not decode, still
		total.Failed++
		return nil
	}
	switch outcome, err := p.await(ctx, e); outcome {
	case Handled:
		total.Handled++
	case Parked:
		total.Failed++
	case Failed, Unknown:
		return err
	}
	return nil
}

const replayPage = 100

// cursor is a place in the order of arrival.
type cursor struct {
	at  time.Time
	key string
}

type storedEvent struct {
	event  Event
	cursor cursor
}

func (p *Processor) stored(ctx context.Context, f Filter, after cursor) ([]storedEvent, error) {
	const page = `
select e.event, e.type, e.key, e.received_at, b.occurred_at, b.body
from idem_payloads b join idem_events e using (event)
where not b.done and starts_with(b.event, $1) and e.state = any ($2)
  and ($3::text[] is null or split_part(e.event, '/', 2) = any ($3))
  and ($4::text[] is null or e.type = any ($4))
  and ($5::text[] is null or substring(e.event from '^[^/]*/[^/]*/(.*)$') = any ($5))
  and (e.received_at, e.event) > ($6, $7)
order by e.received_at, e.event limit $8`
	states := []string{string(StateUnhandled), string(StateFailed)}
	if f.States != nil {
		states = states[:0]
	}
	for _, s := range f.States {
		states = append(states, string(s))
	}
	var scopes []string
	for _, s := range f.Scopes {
		scopes = append(scopes, url.PathEscape(s))
	}
	rows, err := p.pool.Query(ctx, page, p.source.Name()+"/", states, scopes, f.Types, f.IDs, after.at, after.key, replayPage)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanStored)
}

func scanStored(row pgx.CollectableRow) (s storedEvent, err error) {
	var occurred *time.Time
	e := &s.event
	err = row.Scan(&s.cursor.key, &e.Type, &e.Key, &s.cursor.at, &occurred, &e.Payload)
	e.Source, e.Scope, e.ID = parseRowKey(s.cursor.key)
	if occurred != nil {
		e.OccurredAt = *occurred
	}
	return s, err
}
