package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/terminal"
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
	Penalized int    `json:"penalized_requests"`
	// Until the first event may be deleted; null if nothing is held up, or if
	// that is not known.
	SecondsLeft *int64 `json:"seconds_left"`
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

// placeOf returns an address without parts that may be a secret.
func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// overview is the output of status as JSON.
type overview struct {
	Webhooks []row  `json:"webhooks"`
	Owed     []debt `json:"owed"` // null if that is not known

	// The differences that keep events away from the application's webhook; absent where that is not named.
	Differences []asaas.WebhookDifference `json:"differences,omitempty"`
}

// status prints all webhooks, and the events that the application owes.
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
	lost, err := p.losses(ctx)
	if err != nil {
		return err
	}
	if p.json {
		err = p.printLine(overview{rows, debts, lost})
	} else {
		err = errors.Join(p.printTable(rows), p.printLosses(lost), p.printOwed(debts, known))
	}
	if err == nil && (attention || len(debts) > 0 || len(lost) > 0) {
		return errAttention
	}
	return err
}

// losses returns the differences that keep events away from the application's webhook, where a
// flag or the program names it.
func (p *program) losses(ctx context.Context) (lost []asaas.WebhookDifference, err error) {
	flags := p.webhook != "" || p.url != "" || p.handled != ""
	if !flags && (p.Dispatcher == nil || p.Webhook.Name == "" || p.Webhook.URL == "") {
		return nil, nil
	}
	plan, err := p.makePlan(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range plan.Differences {
		if d.LosesEvents {
			lost = append(lost, d)
		}
	}
	return lost, nil
}

func (p *program) printLosses(lost []asaas.WebhookDifference) error {
	for _, d := range lost {
		if _, err := fmt.Fprintf(p.out, "%s\n", terminal.Clean(d.Text)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printTable(rows []row) error {
	t := &terminal.Table{Heads: []string{"ID", p.text("NAME"), "URL", p.text("STATE"), p.text("PENALIZED"), p.text("TIME LEFT")}}
	for _, r := range rows {
		t.Add(terminal.Clean(r.ID), terminal.Clean(r.Name), terminal.Clean(r.URL), p.words(r), strconv.Itoa(r.Penalized), p.timeLeft(r))
	}
	if len(rows) > 0 {
		return t.Print(p.out, p.width, 0)
	}
	_, err := fmt.Fprintln(p.out, p.text("The account has no webhooks."))
	return err
}

// words returns the state, with the other causes that keep events away.
func (p *program) words(r row) string {
	if r.State != disabled && !r.Enabled {
		return p.text("%s, disabled", string(r.State))
	}
	return string(r.State)
}

// timeLeft is in days and hours, rounded down.
func (p *program) timeLeft(r row) string {
	switch {
	case !r.State.isHeldUp():
		return "-"
	case r.SecondsLeft == nil:
		return p.text("give -last-event")
	case *r.SecondsLeft == 0:
		return p.text("none, events may be deleted")
	}
	hours := *r.SecondsLeft / 3600
	return fmt.Sprintf("%dd %dh", hours/24, hours%24)
}
