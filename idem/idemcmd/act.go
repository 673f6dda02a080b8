package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/terminal"
)

// act is a verb that changes something.
type act struct {
	verb   string
	what   string // would happen to the events, as a sentence
	always bool   // it does something even where no event matches
	choose func(context.Context, *operator.Operator) (chosen, error)
	do     func(context.Context, *operator.Operator, chosen) (done, error)
}

// chosen is what a person is shown, and asked about.
type chosen struct {
	filter idem.Filter // which names these events; the zero value shows none
	n      int64
}

// done is what an action came to, as JSON.
type done struct {
	Source  string `json:"source"`
	Action  string `json:"action"`
	Matched int64  `json:"matched"`
	DryRun  bool   `json:"dry_run"`

	Changed   *int64 `json:"changed,omitempty"` // requeued, discarded, forgotten
	Done      *int   `json:"done,omitempty"`    // of a replay
	Failed    *int   `json:"failed,omitempty"`
	Unhandled *int   `json:"unhandled,omitempty"`
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
	asks := !p.dryRun && !p.yes && (total > 1 || total > 0 && a.always)
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
	var said error
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

// firstFew is how many events a plan shows.
const firstFew = 5

// plan tells what would happen. It goes to where the question is, unless it is all
// that was asked for.
func (p *program) plan(ctx context.Context, a act, each []chosen) error {
	out := p.Stderr
	if p.dryRun {
		out = p.Stdout
	}
	for n, o := range p.operators {
		if each[n].n == 0 && !a.always {
			continue
		}
		fmt.Fprintf(out, "%s of %s.\n", events(each[n].n), clean(o.SourceName()))
		if each[n].filter.Events == nil {
			continue
		}
		first, err := first(ctx, o, each[n].filter)
		if err != nil {
			return err
		}
		t := &table{heads: []string{"  " + p.head("RECEIVED"), "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID", "ERROR"}}
		for _, s := range first {
			t.add("  "+p.at(s.ReceivedAt), clean(s.Scope), string(s.State), clean(s.Type), clean(s.Key), clean(s.ID), short(s.LastError))
		}
		if err := t.print(out); err != nil {
			return err
		}
		if more := each[n].n - int64(len(first)); more > 0 {
			fmt.Fprintf(out, "  and %s more\n", number(more))
		}
	}
	_, err := fmt.Fprintln(out, a.what)
	return err
}

var (
	errDeclined = errors.New("nothing was changed: the answer was not y")
	errNobody   = usage("nothing was changed: nobody is at a terminal to confirm it: give -yes, or -dry-run to look only")
)

// confirm asks a person.
func (p *program) confirm(ctx context.Context, a act, total int64) error {
	if !p.asks {
		return errNobody
	}
	yes, err := terminal.Confirm(ctx, p.Stdin, p.Stderr, strings.ToUpper(a.verb[:1])+a.verb[1:]+" these "+events(total)+"?")
	switch {
	case errors.Is(err, terminal.ErrNobody):
		return errNobody
	case err != nil:
		return fmt.Errorf("nothing was changed: %w", err)
	case !yes:
		return errDeclined
	}
	return nil
}

// choose returns the events that the flags choose.
func (p *program) choose(ctx context.Context, o *operator.Operator) (chosen, error) {
	f, err := o.Choose(ctx, p.filter)
	return chosen{f, int64(len(f.Events))}, err
}

// first returns the oldest events of a filter.
func first(ctx context.Context, o *operator.Operator, f idem.Filter) (few []idem.StoredEvent, err error) {
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

// sayLeft says what of the events that a person was shown is no more to be acted upon, and what came
// since. acted is how many events were.
func (p *program) sayLeft(ctx context.Context, o *operator.Operator, c chosen, acted int64) error {
	if left := c.n - acted; left > 0 {
		p.say("idem: %s of the %s of %s left alone: done, in another state by now, or being processed\n", number(left), events(c.n), clean(o.SourceName()))
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
		p.say("idem: %s of %s came since, left alone: run it again to see them\n", events(came), clean(o.SourceName()))
	}
	return nil
}

// changed prints how many events were changed.
func (p *program) changed(o *operator.Operator, did string, n int64) done {
	if !p.json {
		fmt.Fprintf(p.Stdout, "%s of %s: %s\n", events(n), clean(o.SourceName()), did)
	}
	return done{Changed: &n}
}
