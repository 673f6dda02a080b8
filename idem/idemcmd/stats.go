package idemcmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// backlog is the events of a source that are not done, as JSON.
type backlog struct {
	At          time.Time `json:"at"`
	Source      string    `json:"source"`
	Pending     count     `json:"pending"`
	Retrying    count     `json:"retrying"`
	Unhandled   count     `json:"unhandled"`
	Parked      count     `json:"parked"`
	BlockedKeys int64     `json:"blocked_keys"`
}

// count is the events in one state.
type count struct {
	Events        int64 `json:"events"`
	OldestSeconds int64 `json:"oldest_seconds"`
}

func newCount(b idem.Backlog) count { return count{b.Events, int64(b.Oldest / time.Second)} }

// text is the count in a table: 12 (3m 5s).
func (c count) text() string {
	if c.Events == 0 {
		return "0"
	}
	return fmt.Sprintf("%s (%s)", command.Number(c.Events), age(time.Duration(c.OldestSeconds)*time.Second))
}

func (p *program) stats(ctx context.Context) error {
	all, err := p.backlogs(ctx)
	if err != nil {
		return err
	}
	if !p.json {
		return p.printStats(p.Stdout, all)
	}
	return p.printBacklogs(all)
}

func (p *program) printBacklogs(all []backlog) error {
	for _, b := range all {
		if err := p.printLine(b); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) backlogs(ctx context.Context) (all []backlog, err error) {
	for _, o := range p.operators {
		s, err := o.Stats(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, backlog{
			p.now().UTC().Truncate(time.Second), o.SourceName(),
			newCount(s.Pending), newCount(s.Retrying), newCount(s.Unhandled), newCount(s.Parked), s.BlockedKeys,
		})
	}
	return all, nil
}

// printStats prints a table, and the next steps.
func (p *program) printStats(w io.Writer, all []backlog) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No event is stored.")
		return err
	}
	t := &terminal.Table{Heads: []string{"SOURCE", "PENDING", "RETRYING", "UNHANDLED", "PARKED", "BLOCKED ENTITIES"}}
	var parked, blocked bool
	for _, b := range all {
		t.Add(terminal.Clean(b.Source), b.Pending.text(), b.Retrying.text(), b.Unhandled.text(), b.Parked.text(), strconv.FormatInt(b.BlockedKeys, 10))
		parked, blocked = parked || b.Parked.Events > 0, blocked || b.BlockedKeys > 0
	}
	if err := t.Print(w, p.width, 0); err != nil {
		return err
	}
	if parked {
		fmt.Fprintln(w, "\n"+"Parked events stay until somebody acts: idem list -state parked shows why.")
	}
	if blocked {
		fmt.Fprintln(w, "Events wait behind an earlier one of their entity: idem blocked shows which.")
	}
	return nil
}
