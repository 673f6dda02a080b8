package idemcmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// backlog is the events of a source that are not done, as JSON.
type backlog struct {
	At           time.Time `json:"at"`
	Source       string    `json:"source"`
	Workers      int       `json:"workers"`
	Pending      count     `json:"pending"`
	Failing      count     `json:"failing"` // pending, and an attempt has failed; without the acknowledged ones
	Unhandled    count     `json:"unhandled"`
	Parked       count     `json:"parked"`
	Acknowledged int64     `json:"acknowledged"`
	BlockedKeys  int64     `json:"blocked_keys"`

	Pauses   []operator.Pause `json:"pauses,omitempty"`
	Findings []check.Finding  `json:"findings,omitempty"`
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
	return command.Text("%s (%s)", c.Events, time.Duration(c.OldestSeconds)*time.Second)
}

// stats prints the backlogs.
func (p *program) stats(ctx context.Context) error {
	var all []backlog
	for _, o := range p.operators {
		s, err := o.State(ctx)
		if err != nil {
			return err
		}
		alive := 0
		for _, w := range s.Workers {
			if w.Alive {
				alive++
			}
		}
		all = append(all, backlog{
			p.now().UTC().Truncate(time.Second), o.SourceName(), alive, newCount(s.Pending), newCount(s.Failing),
			newCount(s.Unhandled), newCount(s.Parked), s.Acknowledged, s.BlockedKeys, s.Pauses, worth(s),
		})
	}
	if !p.json {
		return p.printStats(all)
	}
	for _, b := range all {
		if err := p.printLine(b); err != nil {
			return err
		}
	}
	return nil
}

// worth returns what is to be said of a source below the table, which has the workers.
func worth(s operator.State) []check.Finding {
	return slices.DeleteFunc(diagnosis.Causes(s.Findings("en")), func(f check.Finding) bool { return f.Severity == check.Info && f.Check == "workers" })
}

// printStats prints a table, and what is wrong.
func (p *program) printStats(all []backlog) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(p.Stdout, "No event is stored.")
		return err
	}
	t := &terminal.Table{Heads: []string{"SOURCE", "WORKERS", "PENDING", "FAILING", "UNHANDLED", "PARKED", "BLOCKED ENTITIES"}}
	for _, b := range all {
		t.Add(terminal.Clean(b.Source), strconv.Itoa(b.Workers), b.Pending.text(), b.Failing.text(), b.Unhandled.text(), b.Parked.text(), strconv.FormatInt(b.BlockedKeys, 10))
	}
	if err := t.Print(p.Stdout, 0); err != nil {
		return err
	}
	said := false
	for _, b := range all {
		for _, f := range b.Findings {
			if !said {
				fmt.Fprintln(p.Stdout)
			}
			said = true
			if err := p.printFinding(f); err != nil {
				return err
			}
		}
	}
	return nil
}
