package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/terminal"
)

// act is a verb that changes something.
type act struct {
	verb   string
	what   string // would happen to the events, as a sentence
	always bool   // it does something even where no event matches
	count  func(context.Context, *idem.Operator) (int64, error)
	first  func(context.Context, *idem.Operator) ([]idem.StoredEvent, error) // nil where none are shown
	do     func(context.Context, *idem.Operator, int64) (done, error)
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
	counts := make([]int64, len(p.operators))
	var total int64
	for n, o := range p.operators {
		var err error
		if counts[n], err = a.count(ctx, o); err != nil {
			return err
		}
		total += counts[n]
	}
	if total == 0 && !a.always {
		return p.nothing(ctx)
	}
	if p.dryRun && !p.json || !p.dryRun && !p.yes && total > 1 {
		if err := p.plan(ctx, a, counts); err != nil {
			return err
		}
	}
	if total > 1 && !p.dryRun {
		if err := p.confirm(ctx, a, total); err != nil {
			return err
		}
	}
	var said error
	for n, o := range p.operators {
		if counts[n] == 0 && !a.always {
			continue
		}
		result, err := a.do(ctx, o, counts[n])
		result.Source, result.Action, result.Matched, result.DryRun = o.SourceName(), a.verb, counts[n], p.dryRun
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
func (p *program) plan(ctx context.Context, a act, counts []int64) error {
	out := p.Stderr
	if p.dryRun {
		out = p.Stdout
	}
	for n, o := range p.operators {
		if counts[n] == 0 && !a.always {
			continue
		}
		fmt.Fprintf(out, "%s of %s.\n", events(counts[n]), clean(o.SourceName()))
		if a.first == nil {
			continue
		}
		first, err := a.first(ctx, o)
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
		if more := counts[n] - int64(len(first)); more > 0 {
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
	switch {
	case p.yes:
		return nil
	case !p.asks:
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

// chosen counts what the filter chooses.
func (p *program) chosen(ctx context.Context, o *idem.Operator) (int64, error) {
	return o.Count(ctx, p.filter)
}

// first returns the oldest events that the filter chooses.
func (p *program) first(ctx context.Context, o *idem.Operator) (few []idem.StoredEvent, err error) {
	for s, err := range o.List(ctx, p.filter) {
		if err != nil {
			return nil, err
		}
		if few = append(few, s); len(few) == firstFew {
			break
		}
	}
	return few, nil
}

// changed prints how many events were changed.
func (p *program) changed(o *idem.Operator, did string, n int64) done {
	if !p.json {
		fmt.Fprintf(p.Stdout, "%s of %s: %s\n", events(n), clean(o.SourceName()), did)
	}
	return done{Changed: &n}
}
