package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// subscription is an event type, and whether it comes and is handled.
type subscription struct {
	Type       string `json:"type"`
	Subscribed bool   `json:"subscribed"`
	Handled    *bool  `json:"handled,omitempty"` // nil if it was not asked
}

// events prints the event types of a webhook.
func (p *program) events(ctx context.Context) error {
	handled, err := p.readHandled()
	if err != nil {
		return err
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return err
	}
	list := compare(w.Events.Or(nil), handled)
	if p.json {
		for _, s := range list {
			err = errors.Join(err, p.printLine(s))
		}
	} else {
		err = p.printEvents(list)
	}
	if err == nil && slices.ContainsFunc(list, subscription.isMissing) {
		return errAttention
	}
	return err
}

// isMissing returns true if the application waits for events that never come.
func (s subscription) isMissing() bool { return !s.Subscribed }

// compare lists the subscribed types, and then the other handled ones. handled is
// nil if that was not asked.
func compare(subscribed []asaas.EventType, handled []string) []subscription {
	out := []subscription{}
	for _, t := range subscribed {
		s := subscription{Type: string(t), Subscribed: true}
		if handled != nil {
			s.Handled = new(slices.Contains(handled, s.Type))
		}
		out = append(out, s)
	}
	for _, t := range handled {
		if !slices.Contains(subscribed, asaas.EventType(t)) {
			out = append(out, subscription{Type: t, Handled: new(true)})
		}
	}
	return out
}

func (p *program) printEvents(list []subscription) error {
	t := &terminal.Table{Heads: []string{"TYPE", "STATE"}}
	for _, s := range list {
		if s.Handled == nil {
			if _, err := fmt.Fprintln(p.out, terminal.Clean(s.Type)); err != nil {
				return err
			}
			continue
		}
		says := ""
		switch {
		case s.isMissing():
			says = "NOT SUBSCRIBED, though handled"
		case *s.Handled:
			says = "subscribed and handled"
		default:
			says = "subscribed, not handled"
		}
		t.Add(terminal.Clean(s.Type), says)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t.Print(p.out, p.width, 0)
}

// readHandled reads the event types that the application handles; nil if
// -handled was not given.
func (p *program) readHandled() ([]string, error) {
	if p.handled == "" {
		return nil, nil
	}
	in := p.in
	if p.handled != "-" {
		f, err := os.Open(p.handled)
		if err != nil {
			return nil, command.Usage("-handled: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return nil, command.Usage("-handled: %w", err)
	}
	return typesIn(string(text))
}

// typesIn reads event types, one per line, as fmt prints a slice, or as JSON.
func typesIn(text string) ([]string, error) {
	types := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]\"", r) })
	for _, t := range types {
		if strings.ContainsFunc(t, isNotOfAType) {
			return nil, command.Usage("-handled: %q is no event type such as PAYMENT_RECEIVED: give one per line", t)
		}
	}
	if len(types) == 0 {
		return nil, command.Usage("-handled: there is no event type in it: write those that the application handles, one per line")
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

func isNotOfAType(r rune) bool {
	return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
