package queue

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/internal/shown"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// overview is the output of status as JSON.
type overview struct {
	Webhooks []row        `json:"webhooks"`
	Owed     []asaas.Owed `json:"owed"` // null if that is not known

	// The differences that keep events away from the application's webhook; absent where that is not named.
	Differences []webhook.Difference `json:"differences,omitempty"`
}

// status prints all webhooks, and the events that the application owes.
func (p *program) status(ctx context.Context) (err error) {
	o, attention := overview{Webhooks: []row{}}, false
	for w, err := range p.client.Webhooks(ctx) {
		if err != nil {
			return err
		}
		r := newRow(w, p.lastEvent)
		o.Webhooks, attention = append(o.Webhooks, r), attention || r.State.isHeldUp() || !r.Enabled
	}
	if !p.listed.isAny { // else overview ends with them, once
		if o.Owed, err = p.debts(ctx); err != nil {
			return err
		}
	}
	if o.Differences, err = p.losses(ctx); err != nil {
		return err
	}
	if p.json {
		p.printJSON(o)
	} else {
		p.printOverview(o)
	}
	if attention || len(o.Owed) > 0 || len(o.Differences) > 0 {
		return errAttention
	}
	return nil
}

func (p *program) printOverview(o overview) {
	t := &terminal.Table{Heads: []string{"ID", "NAME", "URL", "STATE", "PENALIZED", "TIME LEFT"}}
	for _, r := range o.Webhooks {
		t.Add(terminal.Clean(r.ID), terminal.Clean(r.Name), terminal.Clean(r.URL), r.words(), strconv.Itoa(r.Penalized), r.timeLeft())
	}
	if len(o.Webhooks) > 0 {
		p.printTable(t)
	} else {
		p.print("The account has no webhooks.")
	}
	for _, d := range o.Differences {
		p.print(terminal.Clean(d.Text))
	}
	if !p.listed.isAny {
		p.printOwed(o.Owed)
	}
	for _, r := range o.Webhooks {
		if r.State == stopped { // nothing in it is owed yet, because nothing of it was delivered
			p.print(terminal.Clean(r.Name) + " is stopped, and what is in it was not delivered; fix the cause, then: " + p.typed("recover", r.ID))
		}
	}
}

// losses returns the differences that keep events away from the application's webhook, where a
// flag or the program names it.
func (p *program) losses(ctx context.Context) (lost []webhook.Difference, err error) {
	flags := p.webhook != "" || p.url != "" || p.handled != ""
	if !flags && (p.Dispatcher == nil || p.settings().Name == "" || p.settings().URL == "") {
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
		ID: w.ID, Name: w.Name.Or(""), URL: shown.Place(w.URL.Or("")), State: stateOf(w), Enabled: w.Enabled.Or(true),
		Penalized: penalized(w),
	}
	if r.State.isHeldUp() && !lastEvent.IsZero() {
		r.SecondsLeft = new(int64(asaas.TimeLeft(lastEvent) / time.Second))
	}
	return r
}

// words returns the state, with the other causes that keep events away.
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
		return "give -last-event"
	case *r.SecondsLeft == 0:
		return "none, events may be deleted"
	}
	hours := *r.SecondsLeft / 3600
	return fmt.Sprintf("%dd %dh", hours/24, hours%24)
}

// owed prints the events that the application owes. It returns errAttention if there are any.
func (p *program) owed(ctx context.Context) error {
	if p.listed.isAny { // they are printed once, after the last account
		return nil
	}
	debts, err := p.debts(ctx)
	if err != nil {
		return err
	}
	if p.json {
		p.printJSON(struct {
			ID   string       `json:"id"`
			Step string       `json:"step"`
			Owed []asaas.Owed `json:"owed"` // null if that is not known
		}{p.id, string(asaas.RecoveryOwed), debts})
	} else {
		p.printOwed(debts)
	}
	if len(debts) > 0 {
		return errAttention
	}
	return nil
}

// debts returns nil where no database is named.
func (p *program) debts(ctx context.Context) ([]asaas.Owed, error) {
	events, end, err := p.store(ctx)
	if err != nil || events == nil {
		return nil, err
	}
	defer end()
	owed, err := asaas.ListOwed(ctx, events)
	if err != nil {
		return nil, fmt.Errorf("what the application owes is not known, see its database: %w", err)
	}
	return append([]asaas.Owed{}, owed...), nil
}

// store returns the application's events: those of the receiver that this program was built
// with, or of the database that -database or DATABASE_URL names.
func (p *program) store(ctx context.Context) (events asaas.EventStore, end func(), err error) {
	address := cmp.Or(p.database, p.getenv("DATABASE_URL"))
	if p.Events != nil || address == "" {
		return p.Events, func() {}, nil
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return nil, nil, errNoDatabase
	}
	return idem.NewInbox(pool, asaas.NewDispatcher()), pool.Close, nil // it only lists
}

var errNoDatabase = command.Usage("DATABASE_URL is not the address of a database: give one such as postgres://user@host/name")

const owedUnknown string = "What the application owes is not known: set DATABASE_URL to its database to see the events that are parked."

func (p *program) printOwed(debts []asaas.Owed) {
	switch {
	case debts == nil:
		fmt.Fprintln(p.complaints, owedUnknown)
		return
	case len(debts) == 0:
		p.print(shown.NothingOwed + "; reconcile finds what was never delivered")
		return
	}
	p.print("still owed; idem list shows the events, and why:")
	for _, d := range debts {
		p.print(fmt.Sprintf("  %s, since %s", d, d.Oldest.In(p.zone).Format(time.DateTime+" MST")))
	}
	switch again := p.typed("recover", cmp.Or(p.id, "ID"), "-replay"); {
	case p.Events == nil:
		p.print("next: once that is fixed, idem requeue -failed has the workers of an inbox process them; without an inbox, replay them with a program that has the handlers, such as this command with recover -replay")
	case p.replay:
		p.print("next: fix that, and again: " + again)
	default:
		p.print("next: once that is fixed, " + again + " works through what is parked, and workers through the others")
	}
}
