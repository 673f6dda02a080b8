package queue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
)

// debt counts the events of a type that the application owes, as JSON.
type debt struct {
	Type     asaas.EventType `json:"type"`
	Parked   int             `json:"parked"`
	Retrying int             `json:"retrying"`
	Pending  int             `json:"pending"`
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
		return nil, nil, command.Usage("DATABASE_URL is not the address of a database: give one such as postgres://user@host/name")
	}
	return idem.NewProcessor(pool, asaas.NewDispatcher()), pool.Close, nil // it only lists
}

const owedUnknown string = "What the application owes is not known: set DATABASE_URL to its database to see the events that are parked."

func (p *program) printOwed(debts []debt, known bool) error {
	if !known {
		_, err := fmt.Fprintln(p.complaints, command.Text(owedUnknown))
		return err
	}
	if len(debts) == 0 {
		_, err := fmt.Fprintln(p.out, "nothing is owed of what was delivered: no event is parked, and none waits for another delivery; reconcile finds what was never delivered")
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
		return "next: once that is fixed, idem requeue has the workers of an inbox process them; without an inbox, replay them with a program that has the handlers, such as this command with recover -replay"
	case p.replay:
		return "next: fix that, and run recover -replay again"
	}
	return "next: once that is fixed, recover -replay works through them"
}
