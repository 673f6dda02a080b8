package idemcmd

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

func (p *program) show(ctx context.Context) error {
	if p.filter.Keys != nil {
		return p.showEntities(ctx)
	}
	shown, unknown := 0, []string(nil)
	for _, id := range p.words {
		before := shown
		for _, o := range p.operators {
			all, err := find(ctx, o, p.filter.Scopes, id)
			if err != nil {
				return err
			}
			for _, s := range all {
				if err := p.showOne(ctx, o, s, shown > 0); err != nil {
					return err
				}
				shown++
			}
		}
		if shown == before {
			unknown = append(unknown, quote(id))
		}
	}
	if shown == 0 {
		return fmt.Errorf("%w: see whether the id is complete: one with an & in it needs quotes. If it is a payment's, not an event's: idem show -entity %s", errNothing, unknown[0])
	}
	if unknown != nil {
		p.say("idem: %s: %s\n", errNothing, strings.Join(unknown, ", "))
		return errSaid
	}
	return nil
}

// showOne prints an event. Its body is shown once that is recorded.
func (p *program) showOne(ctx context.Context, o *operator.Operator, s idem.StoredEvent, another bool) error {
	l, ok, err := o.Lookup(ctx, s.Scope, s.ID)
	if err != nil {
		return err
	}
	if !ok { // it was forgotten just now
		l.StoredEvent = s
	}
	reveal := func(context.Context) (string, error) { return "shown", p.printEvent(l, another) }
	if !p.payload || len(s.Payload) == 0 {
		_, err := reveal(ctx)
		return err
	}
	what := s.Source + "/" + url.PathEscape(s.Scope) + "/" + s.ID
	return o.Record(ctx, "reveal", what, p.reason, reveal)
}

// shown is an event and why it is not done, as JSON. A body that is no UTF-8 is in
// base64.
type shown struct {
	event
	Why          operator.Why       `json:"why"`
	Says         string             `json:"says"`
	Claim        operator.Claim     `json:"claim,omitzero"`
	First        *waitsFor          `json:"first,omitempty"` // that it waits for
	Behind       int64              `json:"behind"`
	Workers      int                `json:"workers"`
	Failures     []operator.Failure `json:"failures,omitempty"`
	Acknowledged *noted             `json:"acknowledged,omitempty"`
	Payload      *string            `json:"payload,omitempty"`
	PayloadBytes []byte             `json:"payload_base64,omitempty"`
}

// waitsFor is an event that another one waits for, as JSON.
type waitsFor struct {
	event
	Why operator.Why `json:"why"`
}

// noted is an operator.Lookup's Acknowledged as JSON.
type noted struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
}

func newShown(l operator.Lookup) shown {
	says := l.Says("en", func(t time.Time) string { return t.Format(time.RFC3339) })
	s := shown{event: newEvent(l.StoredEvent), Why: l.Why(), Says: says, Claim: l.Claim, Behind: l.Behind, Workers: l.Workers, Failures: l.Failures}
	if a := l.Acknowledged; a.Actor != "" {
		s.Acknowledged = &noted{a.Actor, a.Reason}
	}
	if l.First != nil {
		s.First = &waitsFor{newEvent(l.First.StoredEvent), l.First.Why()}
	}
	return s
}

func (p *program) printEvent(l operator.Lookup, another bool) error {
	s := l.StoredEvent
	if p.json {
		r := newShown(l)
		switch {
		case !p.payload || len(s.Payload) == 0:
		case utf8.Valid(s.Payload):
			r.Payload = new(string(s.Payload))
		default:
			r.PayloadBytes = s.Payload
		}
		return p.printLine(r)
	}
	if another {
		fmt.Fprintln(p.Stdout)
	}
	for _, line := range [][2]string{
		{"id", terminal.Clean(s.ID)},
		{"source", terminal.Clean(s.Source)},
		{"account", terminal.Clean(s.Scope)},
		{"type", terminal.Clean(s.Type)},
		{"entity", terminal.Clean(s.Key)},
		{"state", stateOf(s)},
		{"why", p.whyNot(l)},
		{"occurred", p.moment(s.OccurredAt)},
		{"received", p.moment(s.ReceivedAt)},
		{"next attempt", p.moment(s.DueAt)},
		{"done", p.moment(s.DoneAt)},
		{"conflict", p.conflictOf(s)},
		{"failed", positive(s.Attempts)},
		{"crashes", positive(s.Crashes)},
		{"last error", terminal.Clean(s.LastError)},
	} {
		if line[1] != "" {
			if err := p.field(line[0], line[1]); err != nil {
				return err
			}
		}
	}
	for n, f := range l.Failures {
		label := ""
		if n == 0 {
			label = "attempts"
		}
		if err := p.field(label, p.moment(f.At)+"  "+short(f.Error)); err != nil {
			return err
		}
	}
	return p.printBody(s)
}

// labels is the width of the longest name of a field.
const labels = 13

// field prints a line of an event.
func (p *program) field(name, value string) error {
	_, err := fmt.Fprintf(p.Stdout, "%-*s %s\n", labels, name, value)
	return err
}

// whyNot says why an event is not done; "" if it is, or was given up.
func (p *program) whyNot(l operator.Lookup) string {
	if !isOpen(l.StoredEvent) {
		return ""
	}
	return terminal.Clean(l.Says("en", p.moment))
}

// conflictOf says that another body came with the event's id.
func (p *program) conflictOf(s idem.StoredEvent) string {
	if s.ConflictAt.IsZero() {
		return ""
	}
	return command.Text("%s: it came again with another body, and only one of the two was processed", p.moment(s.ConflictAt))
}

func (p *program) printBody(s idem.StoredEvent) (err error) {
	size := strconv.Itoa(len(s.Payload))
	switch {
	case len(s.Payload) == 0:
		err = p.field("body", "not stored")
	case p.payload:
		err = p.field("body", command.Text("%s bytes", size)+"\n\n"+terminal.Text(string(s.Payload)))
	default:
		err = p.field("body", command.Text("%s bytes, hidden: -payload shows it, and records that you looked", size))
	}
	id, fixed := quote(s.ID), ""
	switch {
	case s.Type == idem.UnreadableType && s.State == idem.StateParked:
		fixed = "  idem discard -reason 'delivered again' " + id + "  # once the provider has delivered it again, whole"
	case s.State == idem.StateParked || s.State == idem.StateUnhandled:
		fixed = "  idem requeue " + id + "  # the workers of an inbox process it\n  idem replay " + id + "  # a program with the handlers processes it here"
	case s.State == idem.StatePending && s.Attempts > 0:
		fixed = "  idem requeue -state pending " + id + "  # the workers try it now, and not when it is due"
	}
	if err == nil && fixed != "" {
		_, err = fmt.Fprintln(p.Stdout, "\nOnce the cause is fixed:\n"+fixed)
	}
	return err
}

// manyEvents is the number of rows from which a search by entity is announced.
const manyEvents = 1_000_000

// showEntities prints the events of entities, and why those are not done that are not.
func (p *program) showEntities(ctx context.Context) error {
	t := p.table("RECEIVED @", "SOURCE", "ACCOUNT", "ENTITY", "STATE", "TYPE", "ID", "DONE @", "FAILED", "ERROR")
	var why []string
	shown := 0
	for _, o := range p.operators {
		if n, err := o.ScanOfKey(ctx); err != nil {
			return err
		} else if n >= manyEvents {
			p.tell("reading about %s, as there is no index by entity: idem help show says how to make one", p.events(n))
		}
		for _, key := range p.filter.Keys {
			all, err := o.OfKey(ctx, p.filter.Scopes, key, p.most())
			if err != nil {
				return err
			}
			if len(all) == p.limit {
				p.tell("these are the latest %s of %s: -limit 0 prints all", p.events(int64(p.limit)), terminal.Clean(key))
			}
			entity := ""
			if len(p.filter.Keys) > 1 {
				entity = key
			}
			shown += len(all)
			for _, s := range all {
				if err := p.row(t, newEvent(s), p.at(s.ReceivedAt), p.sourceOf(o), s.Scope, entity, stateOf(s), s.Type, s.ID, p.at(s.DoneAt), positive(s.Attempts), s.LastError); err != nil {
					return err
				}
			}
			says, err := p.whyStuck(ctx, o, all)
			if err != nil {
				return err
			}
			why = append(why, says...)
		}
	}
	if shown == 0 {
		return fmt.Errorf("%w: none ever came, or they were forgotten after the retention, or they are of another -source or -account", errNothing)
	}
	err := p.printTable(t)
	for _, says := range why {
		if err == nil && !p.json {
			_, err = fmt.Fprintln(p.Stdout, "\n"+says)
		}
	}
	return err
}

// most returns -limit, or a number that is larger than any limit.
func (p *program) most() int { return cmp.Or(p.limit, 1<<30) }

// whyStuck says why the first event of each account that is not done is not: others may wait for it.
func (p *program) whyStuck(ctx context.Context, o *operator.Operator, all []idem.StoredEvent) (why []string, err error) {
	seen := map[string]bool{}
	for _, s := range all {
		if !isOpen(s) || seen[s.Scope] {
			continue
		}
		seen[s.Scope] = true
		l, ok, err := o.Lookup(ctx, s.Scope, s.ID)
		if err != nil {
			return nil, err
		}
		if ok {
			why = append(why, terminal.Clean(s.ID+": "+l.Says("en", p.moment)))
		}
	}
	return why, nil
}
