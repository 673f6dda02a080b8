package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/paghooks/paghooks/asaas"
)

// state is that of a webhook's queue, for people.
type state string

const (
	fine           state = "ok"
	penalizedState state = "penalized"
	stopped        state = "stopped"
	disabled       state = "disabled" // and nothing else
	unknown        state = "unknown"
)

func stateOf(w *asaas.Webhook) state {
	switch {
	case w.Interrupted.IsZero() || w.PenalizedRequestsCount.IsZero():
		return unknown
	case w.Interrupted.Or(false):
		return stopped
	case penalized(w) > 0:
		return penalizedState
	case !w.Enabled.Or(true):
		return disabled
	}
	return fine
}

func penalized(w *asaas.Webhook) int { return int(w.PenalizedRequestsCount.Or(0)) }

func (s state) isHeldUp() bool { return s != fine && s != disabled }

// row is a webhook as it is printed.
type row struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	URL       string `json:"url"`
	State     state  `json:"state"`
	Enabled   bool   `json:"enabled"`
	Penalized int    `json:"penalizedRequests"`
	// Until the first event may be deleted; null if nothing is held up, or if
	// that is not known.
	SecondsLeft *int64 `json:"secondsLeft"`
}

func newRow(w *asaas.Webhook, lastEvent time.Time) row {
	r := row{
		ID: w.ID, Name: w.Name.Or(""), URL: placeOf(w.URL.Or("")), State: stateOf(w), Enabled: w.Enabled.Or(true),
		Penalized: penalized(w),
	}
	if r.State.isHeldUp() && !lastEvent.IsZero() {
		left := asaas.Penalty{Webhook: w}.TimeLeft(lastEvent)
		r.SecondsLeft = new(int64(left / time.Second))
	}
	return r
}

// placeOf is an address without what may be a secret.
func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// overview is what status prints as JSON.
type overview struct {
	Webhooks []row  `json:"webhooks"`
	Owed     []debt `json:"owed"` // null if that is not known
}

// status prints all webhooks, and what the application owes.
func (p *program) status(ctx context.Context) error {
	rows := []row{}
	attention := false
	for w, err := range p.client.Webhooks(ctx) {
		if err != nil {
			return err
		}
		r := newRow(w, p.lastEvent)
		rows, attention = append(rows, r), attention || r.State.isHeldUp() || !r.Enabled
	}
	debts, known, err := p.debts(ctx)
	if err != nil {
		return err
	}
	if p.json {
		err = p.printJSON(overview{rows, debts})
	} else {
		err = errors.Join(p.printTable(rows), p.printOwed(debts, known))
	}
	if err == nil && (attention || len(debts) > 0) {
		return errAttention
	}
	return err
}

func (p *program) printTable(rows []row) error {
	t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tURL\tSTATE\tPENALIZED\tTIME LEFT")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", cell(r.ID), cell(r.Name), cell(r.URL), r.words(), r.Penalized, r.timeLeft())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(p.out, "The account has no webhooks.")
		return err
	}
	return nil
}

// words are the state, with what else keeps events away.
func (r row) words() string {
	if r.State != disabled && !r.Enabled {
		return string(r.State) + ", disabled"
	}
	return string(r.State)
}

// timeLeft is in days and hours, rounded down.
func (r row) timeLeft() string {
	switch {
	case !r.State.isHeldUp():
		return "-"
	case r.SecondsLeft == nil:
		return "give --last-event"
	case *r.SecondsLeft == 0:
		return "none, events may be deleted"
	}
	hours := *r.SecondsLeft / 3600
	return fmt.Sprintf("%dd %dh", hours/24, hours%24)
}

// cell makes a text of Asaas's fit for a table and a terminal.
func cell(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
