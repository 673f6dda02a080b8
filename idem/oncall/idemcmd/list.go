package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// event is a stored event as JSON.
type event struct {
	Source     string     `json:"source"`
	Scope      string     `json:"scope"`
	ID         string     `json:"id"`
	Type       string     `json:"type"`
	Key        string     `json:"key"`
	State      idem.State `json:"state"`
	Attempts   int        `json:"attempts"`
	Crashes    int        `json:"crashes"`
	LastError  string     `json:"last_error"`
	OccurredAt time.Time  `json:"occurred_at,omitzero"`
	ReceivedAt time.Time  `json:"received_at"`
	DueAt      time.Time  `json:"due_at,omitzero"`
	DoneAt     time.Time  `json:"done_at,omitzero"`
	ConflictAt time.Time  `json:"conflict_at,omitzero"`
	BodyBytes  int        `json:"body_bytes"` // 0 when it is not stored

	AcknowledgedAt time.Time `json:"acknowledged_at,omitzero"`
}

func newEvent(s idem.StoredEvent) event {
	return event{
		s.Source, s.Scope, s.ID, s.Type, s.Key, s.State, s.Attempts, s.Crashes, s.LastError,
		s.OccurredAt, s.ReceivedAt, s.DueAt, s.DoneAt, s.ConflictAt, len(s.Payload), s.AcknowledgedAt,
	}
}

// stateOf is an event's state for people.
func stateOf(s idem.StoredEvent) string {
	if s.AcknowledgedAt.IsZero() {
		return string(s.State)
	}
	return string(s.State) + ", acknowledged"
}

// perPage is the number of events that one statement reads, with their bodies.
const perPage = 100

// list prints the events that the filter chooses.
func (p *program) list(ctx context.Context) error {
	t := p.table("RECEIVED @", "SOURCE", "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID", "FAILED", "NEXT ATTEMPT @", "ERROR")
	var printed int64
	for _, o := range p.operators {
		n, err := p.listOf(ctx, o, t)
		if err != nil {
			return err
		}
		printed += n
	}
	if printed == 0 {
		return p.nothingOf(ctx, p.filter.IDs)
	}
	if err := p.printTable(t); err != nil {
		return err
	}
	if p.limit > 0 && printed >= int64(p.limit) {
		of, err := p.count(ctx)
		if err != nil {
			return err
		}
		if of > printed {
			p.tell("these are %s of %s: -limit 0 prints all", printed, p.events(of))
		}
	}
	return nil
}

// listOf prints events of a source, or puts them into the table.
func (p *program) listOf(ctx context.Context, o *operator.Operator, t *terminal.Table) (n int64, err error) {
	for place, more := (operator.Place{}), true; more; {
		size := perPage
		if p.limit > 0 {
			size = min(size, p.limit-int(n))
		}
		page, err := o.Page(ctx, p.named(o), place, size)
		if err != nil {
			return n, err
		}
		for _, s := range page.Events {
			if !p.mayBeMeant(store.Event(s.Event).RowKey()) {
				continue
			}
			if err := p.listOne(o, s, t); err != nil {
				return n, err
			}
			n++
		}
		place, more = page.Next, page.Next != (operator.Place{}) && (p.limit == 0 || n < int64(p.limit))
	}
	return n, nil
}

func (p *program) listOne(o *operator.Operator, s idem.StoredEvent, t *terminal.Table) error {
	next := ""
	switch {
	case s.DueAt.After(p.now()):
		next = p.at(s.DueAt)
	case s.State == idem.StatePending && s.DueAt.IsZero():
		next = "after an earlier one"
	}
	return p.row(t, newEvent(s), p.at(s.ReceivedAt), p.sourceOf(o), s.Scope, stateOf(s), s.Type, s.Key, s.ID, positive(s.Attempts), next, s.LastError)
}

// count counts the events that the filter chooses.
func (p *program) count(ctx context.Context) (n int64, err error) {
	for _, o := range p.operators {
		some, err := o.Count(ctx, p.named(o))
		if err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// sayUnmatched names the ids of the command line that no chosen event has, where others are chosen.
func (p *program) sayUnmatched(ctx context.Context) error {
	var ids []string
	for _, id := range p.filter.IDs {
		if !slices.Contains(p.matched, id) {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		return nil
	}
	err := p.nothingOf(ctx, ids)
	if !errors.Is(err, errNothing) {
		return err
	}
	p.say("idem: %s\n", err)
	return errSaid
}

// nothingOf returns errNothing with the reasons why the events of ids are not chosen: they are in other states,
// say. Without ids nothing was chosen by flags.
func (p *program) nothingOf(ctx context.Context, ids []string) error {
	if ids == nil {
		return p.nothingChosen()
	}
	var found, unknown []string
	for _, id := range ids {
		before := len(found)
		for _, o := range p.operators {
			all, err := find(ctx, o, p.filter.Scopes, id)
			if err != nil {
				return err
			}
			for _, s := range all {
				found = append(found, fmt.Sprintf("%s is %s", terminal.Clean(id), s.State))
			}
		}
		if len(found) == before {
			unknown = append(unknown, terminal.Clean(id)+" is not stored")
		}
	}
	if found == nil {
		return fmt.Errorf("%w: see whether the id is complete: one with an & in it needs quotes. If it is a payment's, not an event's: -entity %s", errNothing, quote(ids[0]))
	}
	found = append(found, unknown...)
	slices.Sort(found)
	hint := ""
	if p.filter.States == nil { // not of list
		hint = "; those that are pending need -state"
	}
	return fmt.Errorf("%w: %s%s", errNothing, strings.Join(slices.Compact(found), ", "), hint)
}

// nothingChosen returns errNothing, with the states if nothing else narrowed the choice.
func (p *program) nothingChosen() error {
	f := p.filter
	f.States = nil
	if !f.IsZero() {
		return errNothing
	}
	states := []string{"unhandled", "parked"}
	if p.filter.States != nil {
		states = nil
		for _, s := range p.filter.States {
			states = append(states, string(s))
		}
	}
	return fmt.Errorf("%w: states %s", errNothing, strings.Join(states, ", "))
}

// find returns the events of an id, or of a row key as idem audit prints it, in any state: in the accounts that are
// named, or in all.
func find(ctx context.Context, o *operator.Operator, scopes []string, id string) ([]idem.StoredEvent, error) {
	all, err := o.WithID(ctx, id)
	return slices.DeleteFunc(all, func(s idem.StoredEvent) bool { return scopes != nil && !slices.Contains(scopes, s.Scope) }), err
}

// named returns the filter of the flags for a source, with the ids of the row keys among those of the command
// line. Of the events that it chooses, mayBeMeant leaves out those of other accounts.
func (p *program) named(o *operator.Operator) idem.Filter {
	f := p.filter
	for _, id := range p.filter.IDs {
		if e := store.EventOf(id); e.Source == o.SourceName() && e.ID != "" {
			f.IDs = append(slices.Clip(f.IDs), e.ID)
		}
	}
	return f
}

// mayBeMeant reports whether the command line names the event with this row key, by its id or by the key. It
// is true if the command line names no event.
func (p *program) mayBeMeant(key string) bool {
	return p.filter.IDs == nil || slices.Contains(p.filter.IDs, key) || slices.Contains(p.filter.IDs, store.EventOf(key).ID)
}

// blockedEntity is an operator.Blocked as JSON.
type blockedEntity struct {
	Source     string     `json:"source"`
	Scope      string     `json:"scope"`
	Key        string     `json:"key"`
	ID         string     `json:"id"`
	Type       string     `json:"type"`
	State      idem.State `json:"state"`
	LastError  string     `json:"last_error"`
	AgeSeconds int64      `json:"age_seconds"`
	DueAt      time.Time  `json:"due_at,omitzero"`
	Waiting    int64      `json:"waiting"`
}

func (p *program) blocked(ctx context.Context) error {
	t := p.table("AGE", "SOURCE", "ACCOUNT", "ENTITY", "WAITING", "FIRST EVENT", "TYPE", "STATE", "NEXT ATTEMPT @", "ERROR")
	return printMost(ctx, p, t, (*operator.Operator).Blocked, "these are the oldest %s of %s blocked entities of %s: -limit 0 prints all", "no entity is blocked", func(o *operator.Operator, b operator.Blocked) error {
		e := blockedEntity{o.SourceName(), b.Scope, b.Key, b.ID, b.Type, b.State, b.LastError, int64(b.Age / time.Second), b.DueAt, b.Waiting}
		return p.row(t, e, command.Text("%s", b.Age), p.sourceOf(o), b.Scope, b.Key, command.Number(b.Waiting), b.ID, b.Type, string(b.State), p.at(b.DueAt), b.LastError)
	})
}

// conflict is an operator.Conflict as JSON.
type conflict struct {
	Source     string     `json:"source"`
	Scope      string     `json:"scope"`
	ID         string     `json:"id"`
	Type       string     `json:"type"`
	Key        string     `json:"key"`
	State      idem.State `json:"state"`
	ConflictAt time.Time  `json:"conflict_at"`
}

// conflicts prints the events that came again with another body.
func (p *program) conflicts(ctx context.Context) error {
	t := p.table("ANOTHER BODY CAME @", "SOURCE", "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID")
	return printMost(ctx, p, t, (*operator.Operator).Conflicts, "these are the latest %s of %s events of %s: -limit 0 prints all", "no event came again with another body", func(o *operator.Operator, c operator.Conflict) error {
		return p.row(t, conflict{c.Source, c.Scope, c.ID, c.Type, c.Key, c.State, c.At}, p.at(c.At), p.sourceOf(o), c.Scope, string(c.State), c.Type, c.Key, c.ID)
	})
}

// printMost prints up to -limit rows of each source, and says which those are of all.
func printMost[R any](ctx context.Context, p *program, t *terminal.Table, get func(*operator.Operator, context.Context, int) ([]R, int64, error), some, none string, row func(*operator.Operator, R) error) error {
	found := int64(0)
	for _, o := range p.operators {
		rows, all, err := get(o, ctx, p.most())
		if err != nil {
			return err
		}
		found += all
		if n := int64(len(rows)); n < all {
			p.tell(some, n, all, o.SourceName())
		}
		for _, r := range rows {
			if err := row(o, r); err != nil {
				return err
			}
		}
	}
	if found == 0 {
		return command.Error(command.Nothing, errors.New(none))
	}
	return p.printTable(t)
}
