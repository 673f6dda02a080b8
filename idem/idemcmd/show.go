package idemcmd

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

func (p *program) show(ctx context.Context) error {
	shown := 0
	for _, id := range p.words {
		for _, o := range p.operators {
			for s, err := range find(ctx, o, p.filter.Scopes, id) {
				if err == nil {
					err = p.showOne(ctx, o, s, shown > 0)
				}
				if err != nil {
					return err
				}
				shown++
			}
		}
	}
	if shown == 0 {
		return fmt.Errorf("%w: see whether the id is complete: one with an & in it needs quotes; a done event of an account needs -account", errNothing)
	}
	return nil
}

// showOne prints an event. Its body is shown once that is recorded.
func (p *program) showOne(ctx context.Context, o *operator.Operator, s idem.StoredEvent, another bool) error {
	reveal := func(context.Context) (string, error) { return "shown", p.printEvent(s, another) }
	if !p.payload || len(s.Payload) == 0 {
		_, err := reveal(ctx)
		return err
	}
	what := s.Source + "/" + url.PathEscape(s.Scope) + "/" + s.ID
	return o.Record(ctx, "reveal", what, p.reason, reveal)
}

// revealed is an event with its body, as JSON. A body that is no UTF-8 is in
// base64.
type revealed struct {
	event
	Payload      *string `json:"payload,omitempty"`
	PayloadBytes []byte  `json:"payload_base64,omitempty"`
}

func (p *program) printEvent(s idem.StoredEvent, another bool) error {
	if p.json {
		r := revealed{event: newEvent(s)}
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
		{"id", clean(s.ID)},
		{"source", clean(s.Source)},
		{"account", clean(s.Scope)},
		{"type", clean(s.Type)},
		{"entity", clean(s.Key)},
		{"state", string(s.State)},
		{"occurred", p.at(s.OccurredAt)},
		{"received", p.at(s.ReceivedAt)},
		{"next attempt", p.at(s.DueAt)},
		{"failed", positive(s.Attempts)},
		{"crashes", positive(s.Crashes)},
		{"last error", clean(s.LastError)},
	} {
		if line[1] != "" {
			fmt.Fprintf(p.Stdout, "%-13s %s\n", line[0], line[1])
		}
	}
	return p.printBody(s)
}

func (p *program) printBody(s idem.StoredEvent) (err error) {
	switch {
	case len(s.Payload) == 0:
		_, err = fmt.Fprintf(p.Stdout, "%-13s %s\n", "body", "not stored")
	case p.payload:
		_, err = fmt.Fprintf(p.Stdout, "%-13s %d bytes\n\n%s\n", "body", len(s.Payload), printable(s.Payload))
	default:
		_, err = fmt.Fprintf(p.Stdout, "%-13s %d bytes, hidden: -payload shows it, and records that you looked\n", "body", len(s.Payload))
	}
	if err == nil && (s.State == idem.StateParked || s.State == idem.StateUnhandled) {
		_, err = fmt.Fprintf(p.Stdout, "\nnext: idem replay %[1]s processes it, in a program with the handlers; idem requeue %[1]s leaves it to the workers of an inbox\n", quote(clean(s.ID)))
	}
	return err
}

// printable is a text of several lines for a terminal, a body for example.
func printable(body []byte) string {
	lines := strings.Split(string(body), "\n")
	for n := range lines {
		lines[n] = strings.Map(func(r rune) rune {
			if !strconv.IsPrint(r) && r != '\t' {
				return '\uFFFD'
			}
			return r
		}, strings.TrimSuffix(lines[n], "\r"))
	}
	return strings.Join(lines, "\n")
}

// positive is a number unless that is 0.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
