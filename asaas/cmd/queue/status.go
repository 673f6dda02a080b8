package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
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
	Webhooks []row  `json:"webhooks"`
	Owed     []debt `json:"owed"` // null if that is not known

	// The differences that keep events away from the application's webhook; absent where that is not named.
	Differences []webhook.Difference `json:"differences,omitempty"`
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
		err = errors.Join(p.printTable(rows), p.printLosses(lost), p.printOwed(debts, known), p.printStopped(rows))
	}
	if err == nil && (attention || len(debts) > 0 || len(lost) > 0) {
		return errAttention
	}
	return err
}

// printStopped prints the next step for each queue that Asaas has stopped: nothing in it is owed yet, because nothing
// of it was delivered.
func (p *program) printStopped(rows []row) error {
	for _, r := range rows {
		if r.State != stopped {
			continue
		}
		if _, err := fmt.Fprintf(p.out, "%s is stopped, and what is in it was not delivered; fix the cause, then: %s recover %s\n",
			terminal.Clean(r.Name), cmp.Or(p.Name, "asaas-queue"), terminal.Clean(r.ID)); err != nil {
			return err
		}
	}
	return nil
}

// losses returns the differences that keep events away from the application's webhook, where a
// flag or the program names it.
func (p *program) losses(ctx context.Context) (lost []webhook.Difference, err error) {
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

func (p *program) printLosses(lost []webhook.Difference) error {
	for _, d := range lost {
		if _, err := fmt.Fprintf(p.out, "%s\n", terminal.Clean(d.Text)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printTable(rows []row) error {
	t := &terminal.Table{Heads: []string{"ID", "NAME", "URL", "STATE", "PENALIZED", "TIME LEFT"}}
	for _, r := range rows {
		t.Add(terminal.Clean(r.ID), terminal.Clean(r.Name), terminal.Clean(r.URL), p.words(r), strconv.Itoa(r.Penalized), p.timeLeft(r))
	}
	if len(rows) > 0 {
		return t.Print(p.out, p.width, 0)
	}
	_, err := fmt.Fprintln(p.out, "The account has no webhooks.")
	return err
}

// timeLeft is in days and hours, rounded down.
func (p *program) timeLeft(r row) string {
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

// words returns the state, with the other causes that keep events away.
func (p *program) words(r row) string {
	if r.State != disabled && !r.Enabled {
		return string(r.State) + ", disabled"
	}
	return string(r.State)
}

// debt counts the events of a type that the application owes, as JSON.
type debt struct {
	Type     asaas.EventType `json:"type"`
	Parked   int             `json:"parked"`
	Retrying int             `json:"retrying"`
	Pending  int             `json:"pending"`
	Failing  int             `json:"failing"`
	Waiting  int             `json:"waiting"`
	Oldest   time.Time       `json:"oldest"`
}

// owed prints the events that the application owes. It returns errAttention if there are any.
func (p *program) owed(ctx context.Context) error {
	debts, known, err := p.debts(ctx)
	if err != nil {
		return err
	}
	if p.json {
		err = p.printLine(struct {
			ID   string `json:"id"`
			Step string `json:"step"`
			Owed []debt `json:"owed"` // null if that is not known
		}{p.id, string(asaas.RecoveryOwed), debts})
	} else {
		err = p.printOwed(debts, known)
	}
	if err == nil && len(debts) > 0 {
		return errAttention
	}
	return err
}

// debts returns nil where no database is named.
func (p *program) debts(ctx context.Context) (debts []debt, known bool, err error) {
	events, end, err := p.store(ctx)
	if err != nil || events == nil {
		return nil, false, err
	}
	defer end()
	owed, err := asaas.ListOwed(ctx, events)
	if err != nil {
		return nil, false, fmt.Errorf("what the application owes is not known, see its database: %w", err)
	}
	debts = []debt{}
	for _, o := range owed {
		o.Oldest = o.Oldest.UTC()
		debts = append(debts, debt(o))
	}
	return debts, true, nil
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
	return idem.NewProcessor(pool, asaas.NewDispatcher()), pool.Close, nil // it only lists
}

var errNoDatabase = command.Usage("DATABASE_URL is not the address of a database: give one such as postgres://user@host/name")

const owedUnknown string = "What the application owes is not known: set DATABASE_URL to its database to see the events that are parked."

func (p *program) printOwed(debts []debt, known bool) error {
	if !known {
		_, err := fmt.Fprintln(p.complaints, command.Text(owedUnknown))
		return err
	}
	if len(debts) == 0 {
		_, err := fmt.Fprintln(p.out, shown.NothingOwed+"; reconcile finds what was never delivered")
		return err
	}
	fmt.Fprintln(p.out, "still owed; idem list shows the events, and why:")
	for _, d := range debts {
		fmt.Fprintln(p.out, "  "+command.Text("%s, since %s", asaas.Owed(d), d.Oldest.In(p.zone).Format(time.DateTime+" MST")))
	}
	_, err := fmt.Fprintln(p.out, p.howToReplay())
	return err
}

func (p *program) howToReplay() string {
	switch {
	case p.Events == nil:
		return "next: once that is fixed, idem requeue -failed has the workers of an inbox process them; without an inbox, replay them with a program that has the handlers, such as this command with recover -replay"
	case p.replay:
		return "next: fix that, and run recover -replay again"
	}
	return "next: once that is fixed, recover -replay works through what is parked or retrying, and workers through the others"
}
