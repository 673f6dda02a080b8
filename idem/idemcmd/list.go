package idemcmd

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
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
	BodyBytes  int        `json:"body_bytes"` // 0 when it is not stored
}

func newEvent(s idem.StoredEvent) event {
	return event{
		s.Source, s.Scope, s.ID, s.Type, s.Key, s.State, s.Attempts, s.Crashes, s.LastError,
		s.OccurredAt.UTC(), s.ReceivedAt.UTC(), s.DueAt.UTC(), len(s.Payload),
	}
}

// perPage is how many events are read at a time, with their bodies.
const perPage = 100

// list prints what the filter chooses.
func (p *program) list(ctx context.Context) error {
	t := &table{heads: []string{p.head("RECEIVED"), "SOURCE", "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID", "FAILED", "ERROR"}}
	var printed int64
	for _, o := range p.operators {
		n, err := p.listOf(ctx, o, t)
		if err != nil {
			return err
		}
		printed += n
	}
	if printed == 0 {
		return p.nothing(ctx)
	}
	if !p.json {
		if err := t.print(p.Stdout); err != nil {
			return err
		}
	}
	if p.limit > 0 && printed >= int64(p.limit) {
		of, err := p.count(ctx)
		if err != nil {
			return err
		}
		if of > printed {
			p.say("idem: these are %s of %s: -limit 0 prints all\n", number(printed), events(of))
		}
	}
	return nil
}

// listOf prints events of a source, or puts them into the table.
func (p *program) listOf(ctx context.Context, o *operator.Operator, t *table) (n int64, err error) {
	for place, more := (idem.Place{}), true; more; {
		size := perPage
		if p.limit > 0 {
			size = min(size, p.limit-int(n))
		}
		page, err := o.Page(ctx, p.filter, place, size)
		if err != nil {
			return n, err
		}
		for _, s := range page.Events {
			if err := p.listOne(o, s, t); err != nil {
				return n, err
			}
		}
		n += int64(len(page.Events))
		place, more = page.Next, page.Next != (idem.Place{}) && (p.limit == 0 || n < int64(p.limit))
	}
	return n, nil
}

func (p *program) listOne(o *operator.Operator, s idem.StoredEvent, t *table) error {
	if p.json {
		return p.printLine(newEvent(s))
	}
	failed := ""
	if s.Attempts > 0 {
		failed = strconv.Itoa(s.Attempts)
	}
	t.add(p.at(s.ReceivedAt), p.sourceOf(o), clean(s.Scope), string(s.State), clean(s.Type), clean(s.Key), clean(s.ID), failed, short(s.LastError))
	return nil
}

// count counts what the filter chooses.
func (p *program) count(ctx context.Context) (n int64, err error) {
	for _, o := range p.operators {
		some, err := o.Count(ctx, p.filter)
		if err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// nothing is errNothing, with what may have been meant: the ids that were given,
// in other states.
func (p *program) nothing(ctx context.Context) error {
	if p.filter.IDs == nil {
		return errNothing
	}
	var found []string
	for _, id := range p.filter.IDs {
		for _, o := range p.operators {
			for s, err := range find(ctx, o, p.filter.Scopes, id) {
				if err != nil {
					return err
				}
				found = append(found, fmt.Sprintf("%s is %s", clean(id), s.State))
			}
		}
	}
	if found == nil {
		return fmt.Errorf("%w: see whether the id is complete: one with an & in it needs quotes", errNothing)
	}
	slices.Sort(found)
	hint := ""
	if p.filter.States == nil {
		hint = "; those that are pending or retrying need -state"
	}
	return fmt.Errorf("%w: %s%s", errNothing, strings.Join(slices.Compact(found), ", "), hint)
}

// find finds the events of an id: in the accounts that are named, else without
// an account and, if it is not done, in any.
func find(ctx context.Context, o *operator.Operator, scopes []string, id string) iter.Seq2[idem.StoredEvent, error] {
	return func(yield func(idem.StoredEvent, error) bool) {
		if rest, ok := strings.CutPrefix(id, o.SourceName()+"/"); ok { // source/scope/id
			if scope, plain, ok := strings.Cut(rest, "/"); ok {
				if scope, err := url.PathUnescape(scope); err == nil {
					scopes, id = []string{scope}, plain
				}
			}
		}
		named := scopes
		if named == nil {
			named = []string{""}
		}
		for _, scope := range named {
			s, ok, err := o.Get(ctx, scope, id)
			if err != nil || ok {
				if !yield(s, err) || err != nil {
					return
				}
			}
		}
		if scopes != nil {
			return
		}
		page, err := o.Page(ctx, idem.Filter{States: notDone, IDs: []string{id}}, idem.Place{}, perPage)
		if err != nil {
			yield(idem.StoredEvent{}, err)
			return
		}
		for _, s := range page.Events {
			if s.Scope != "" && !yield(s, nil) {
				return
			}
		}
	}
}
