package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/paghooks/paghooks/asaas"
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
		err = p.printJSON(list)
	} else {
		err = p.printEvents(list)
	}
	if err == nil && slices.ContainsFunc(list, subscription.isMissing) {
		return errAttention
	}
	return err
}

// isMissing tells whether the application waits for what never comes.
func (s subscription) isMissing() bool { return !s.Subscribed }

// compare lists what is subscribed to, and then what else is handled. handled is
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
	t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		line := cell(s.Type)
		switch {
		case s.isMissing():
			line += "\tNOT SUBSCRIBED, though handled"
		case s.Handled == nil:
		case *s.Handled:
			line += "\tsubscribed and handled"
		default:
			line += "\tsubscribed, not handled"
		}
		fmt.Fprintln(t, line)
	}
	return t.Flush()
}

// readHandled reads the event types that the application handles; nil if
// --handled was not given.
func (p *program) readHandled() ([]string, error) {
	if p.handled == "" {
		return nil, nil
	}
	in := p.in
	if p.handled != "-" {
		f, err := os.Open(p.handled)
		if err != nil {
			return nil, fmt.Errorf("--handled: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("--handled: %w", err)
	}
	return typesIn(string(text))
}

// typesIn reads event types, one per line, as fmt prints a slice, or as JSON.
func typesIn(text string) ([]string, error) {
	types := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]\"", r) })
	for _, t := range types {
		if strings.ContainsFunc(t, isNotOfAType) {
			return nil, fmt.Errorf("--handled: %q is no event type such as PAYMENT_RECEIVED: give one per line", t)
		}
	}
	if len(types) == 0 {
		return nil, errors.New("--handled: there is no event type in it: write those that the application handles, one per line")
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

func isNotOfAType(r rune) bool {
	return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
