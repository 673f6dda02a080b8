package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// act is a verb that changes something.
type act struct {
	verb   string
	asks   string // the verb in the question
	what   string // would happen to the events, as a sentence
	always bool   // it does something even where no event matches
	choose func(context.Context, *operator.Operator) (chosen, error)
	do     func(context.Context, *operator.Operator, chosen) (done, error)
}

// chosen holds the events that a person is shown and asked about.
type chosen struct {
	filter idem.Filter        // which names these events; the zero value shows none
	events []idem.StoredEvent // of a verb that has no filter, to be shown
	n      int64
}

// done is the result of an action, as JSON.
type done struct {
	Source  string `json:"source"`
	Action  string `json:"action"`
	Matched int64  `json:"matched"`
	DryRun  bool   `json:"dry_run"`

	Changed   *int64 `json:"changed,omitempty"` // requeued, discarded, erased, forgotten
	Done      *int   `json:"done,omitempty"`    // of a replay
	Failed    *int   `json:"failed,omitempty"`
	Unhandled *int   `json:"unhandled,omitempty"`

	Overtaken []overtaken `json:"overtaken,omitempty"`
}

// overtaken is an event that was replayed behind a later one of its entity.
type overtaken struct {
	Scope  string `json:"scope"`
	ID     string `json:"id"`
	Type   string `json:"type"`
	By     string `json:"by"`
	ByType string `json:"by_type"`
}

// carryOut counts, shows, asks, and acts.
func (p *program) carryOut(ctx context.Context, a act) error {
	each := make([]chosen, len(p.operators))
	var total int64
	for n, o := range p.operators {
		var err error
		if each[n], err = a.choose(ctx, o); err != nil {
			return err
		}
		total += each[n].n
	}
	if total == 0 && !a.always {
		return p.nothing(ctx)
	}
	said := p.sayUnmatched(ctx)
	if said != nil && !errors.Is(said, errSaid) {
		return said
	}
	asks := !p.dryRun && !p.yes && total > 0
	if p.dryRun && !p.json || asks {
		if err := p.plan(ctx, a, each); err != nil {
			return err
		}
	}
	if asks {
		if err := p.confirm(ctx, a, total); err != nil {
			return err
		}
	}
	for n, o := range p.operators {
		if each[n].n == 0 && !a.always {
			continue
		}
		result, err := a.do(ctx, o, each[n])
		result.Source, result.Action, result.Matched, result.DryRun = o.SourceName(), a.verb, each[n].n, p.dryRun
		if errors.Is(err, errSaid) { // the next source is another matter
			said, err = errSaid, nil
		}
		if err == nil && p.json {
			err = p.printLine(result)
		}
		if err != nil {
			return err
		}
	}
	return said
}

// firstFew limits the events that a plan shows.
const firstFew = 5

// plan prints the effect that an action would have. It goes to where the question is, unless it is all
// that was asked for.
func (p *program) plan(ctx context.Context, a act, each []chosen) error {
	out, width := p.Stderr, terminal.Width(p.Stderr)
	if p.dryRun {
		out, width = p.Stdout, p.width
	}
	for n, o := range p.operators {
		if each[n].n == 0 && !a.always {
			continue
		}
		fmt.Fprintln(out, command.Text("%s of %s.", p.events(each[n].n), terminal.Clean(o.SourceName())))
		first := each[n].events[:min(len(each[n].events), firstFew)]
		if each[n].filter.Events != nil {
			var err error
			if first, err = p.first(ctx, o, each[n].filter); err != nil {
				return err
			}
		}
		if len(first) == 0 {
			continue
		}
		t := &terminal.Table{Indent: 2, Heads: []string{p.head("RECEIVED"), "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID", "ERROR"}}
		for _, s := range first {
			t.Add(p.at(s.ReceivedAt), terminal.Clean(s.Scope), string(s.State), terminal.Clean(s.Type), terminal.Clean(s.Key), terminal.Clean(s.ID), terminal.Clean(s.LastError))
		}
		if err := t.Print(out, width, longest); err != nil {
			return err
		}
		if more := each[n].n - int64(len(first)); more > 0 {
			fmt.Fprintln(out, "  "+command.Text("and %s more", more))
		}
	}
	for line := range strings.SplitSeq(a.what, "\n") {
		if _, err := fmt.Fprintln(out, terminal.Wrap(line, width, 0)); err != nil {
			return err
		}
	}
	return nil
}

// confirm asks a person.
func (p *program) confirm(ctx context.Context, a act, total int64) error {
	question := command.Text("%s these %s?", a.asks, p.events(total))
	if total == 1 {
		question = command.Text("%s this event?", a.asks)
	}
	return p.command.Confirm(ctx, question)
}

// choose returns the events that the flags choose.
func (p *program) choose(ctx context.Context, o *operator.Operator) (chosen, error) {
	f, err := o.Choose(ctx, p.named(o))
	f.Events = slices.DeleteFunc(f.Events, func(key string) bool { return !p.mayBeMeant(key) })
	for _, key := range f.Events {
		p.matched = append(p.matched, key, store.EventOf(key).ID)
	}
	return chosen{filter: f, n: int64(len(f.Events))}, err
}

// first returns the oldest events of a filter.
func (p *program) first(ctx context.Context, o *operator.Operator, f idem.Filter) (few []idem.StoredEvent, err error) {
	for s, err := range o.List(ctx, f) {
		if err != nil {
			return nil, err
		}
		if few = append(few, s); len(few) == firstFew {
			break
		}
	}
	return few, nil
}

// The reasons for which an action leaves events alone.
const (
	otherState string = "%s of the %s of %s left alone: done, in another state by now, or being processed"
	notFailed  string = "%s of the %s of %s left alone: waiting behind a parked one and never tried, or not parked any more"
)

// sayLeft says how many of the events that a person was shown are not to be acted upon any more, and how many came
// since. acted is how many events were.
func (p *program) sayLeft(ctx context.Context, o *operator.Operator, c chosen, acted int64, why string) error {
	if left := c.n - acted; left > 0 {
		p.tell(why, left, p.events(c.n), terminal.Clean(o.SourceName()))
	}
	now, err := o.Choose(ctx, p.filter)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	for _, key := range c.filter.Events {
		shown[key] = true
	}
	came := int64(0)
	for _, key := range now.Events {
		if !shown[key] {
			came++
		}
	}
	if came > 0 {
		p.tell("%s of %s came since, left alone: run it again to see them", p.events(came), terminal.Clean(o.SourceName()))
	}
	return nil
}

// brokenOff returns the error of an action that changes all of its events in one transaction. If
// somebody has ended it, it says how to go on.
func (p *program) brokenOff(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, operator.ErrStopped) {
		return err
	}
	return fmt.Errorf("%w: nothing was changed, unless idem audit has its result. Give the command again: it shows the events that are left, and asks anew", err)
}

// changed prints how many events were changed.
func (p *program) changed(o *operator.Operator, did string, n int64) done {
	if !p.json {
		fmt.Fprintln(p.Stdout, command.Text("%s of %s: %s", p.events(n), terminal.Clean(o.SourceName()), did))
	}
	return done{Changed: &n}
}
