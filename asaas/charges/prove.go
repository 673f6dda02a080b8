package charges

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
)

// Proof is a comparison of the charge table with the account's statement of a day.
type Proof struct {
	Day asaas.Date

	Came asaas.Money // the money of charges, before fees
	Left asaas.Money // refunds and chargebacks, less what came back of them

	// Other are the movements that no charge's row tells, by Asaas's type: fees, splits, transfers, anticipations.
	Other map[string]asaas.Money

	// Differences are by charge. Not judged are charges that were paid in cash, whose money is not at Asaas, and
	// anticipated ones, whose money came as an anticipation.
	Differences []Difference
	NotJudged   []string
}

// Difference is a charge of which the statement and the table disagree.
type Difference struct {
	Charge string
	Says   string // for people: both amounts
}

// Prove compares the table with the account's statement of a day, by the calendar of Brasília, charge by charge: what came, and
// what left. It changes nothing. Do it a day or two later, when the events of the day are done:
// the table is compared as it is now, so a chargeback that was won since then is a difference of the day on which it
// was opened.
//
// Asaas documents neither the day on which it takes a refund or a chargeback off, nor what an anticipated charge has in the
// statement. So a refund that the table has and the statement of this day has not is no difference: only money that the
// statement says has left, and the table says is still here. Cure a difference with [Reconcile].
func Prove(ctx context.Context, client *asaas.Client, db DB, scope string, day time.Time) (Proof, error) {
	p := Proof{Day: asaas.Date(dayOf(day)), Other: make(map[string]asaas.Money)}
	if err := checkScope(ctx, db, scope); err != nil {
		return p, err
	}
	moved, err := p.read(ctx, client)
	if err == nil {
		err = p.compare(ctx, db, scope, moved)
	}
	if stop, ok := errors.AsType[*pause](err); ok {
		err = fmt.Errorf("asaas wants a pause of %s: prove the day again after it", stop.again)
	}
	if err != nil {
		return p, fmt.Errorf("asaas/charges: proving %s: %w", p.Day, err)
	}
	return p, nil
}

// movement holds the sums of a charge in the statement of a day.
type movement struct{ came, left asaas.Money }

// read reads the statement of the day.
func (p *Proof) read(ctx context.Context, client *asaas.Client) (map[string]*movement, error) {
	r := &run{Settings: Settings{Calls: 1000}, client: client}
	r.listen()
	moved, seen := make(map[string]*movement), make(map[string]bool)
	list := r.transactions(p.Day, p.Day)
	list.take = func(_ context.Context, t asaas.Transaction) error {
		if seen[t.ID.Or("")] { // pages overlap
			return nil
		}
		seen[t.ID.Or("")] = true
		p.add(moved, t)
		return nil
	}
	_, err := pages(ctx, true, list)
	return moved, err
}

// add counts a movement.
func (p *Proof) add(moved map[string]*movement, t asaas.Transaction) {
	id, kind, value := t.PaymentID.Or(""), t.Type.Or(""), t.Value.Or(asaas.Money{})
	m := moved[id]
	if m == nil {
		m = new(movement)
	}
	switch kind {
	case "PAYMENT_RECEIVED":
		m.came, p.Came = m.came.Add(value), p.Came.Add(value)
	case "PAYMENT_REVERSAL", "PAYMENT_REFUND_CANCELLED", "CHARGEBACK", "CHARGEBACK_REVERSAL":
		m.left, p.Left = m.left.Sub(value), p.Left.Sub(value)
	default:
		p.Other[kind] = p.Other[kind].Add(value)
		return
	}
	moved[id] = m
}

// proven is a row of the table, as far as the statement can confirm it.
type proven struct {
	ID, Status      string
	Value, Received asaas.Money
	Day             asaas.Date // on which its money came
	Anticipated     bool
}

// compare compares the charges of the statement, and those whose money came on the day by the table.
func (p *Proof) compare(ctx context.Context, db DB, scope string, moved map[string]*movement) error {
	rows, _ := db.Query(ctx, `select id, status, value, received, coalesce(received_on::text, ''), anticipated from asaas_charges
		where scope = $1 and (received_on = $2::date or id = any($3)) order by id`, scope, string(p.Day), slices.Collect(maps.Keys(moved)))
	table, err := pgx.CollectRows(rows, pgx.RowToStructByPos[proven])
	if err != nil {
		return err
	}
	for _, c := range table {
		m := cmp.Or(moved[c.ID], new(movement))
		delete(moved, c.ID)
		switch says := c.differs(p.Day, *m); {
		case c.Anticipated, c.Status == string(asaas.PaymentStatusReceivedInCash):
			p.NotJudged = append(p.NotJudged, c.ID)
		case says != "":
			p.Differences = append(p.Differences, Difference{c.ID, says})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(moved)) {
		p.Differences = append(p.Differences, Difference{id, fmt.Sprintf("R$ %s came and R$ %s left, and the table has no row", moved[id].came, moved[id].left)})
	}
	return nil
}

// differs returns how the table differs from the statement, or "".
func (c proven) differs(day asaas.Date, m movement) string {
	switch {
	case m.came.IsZero() && c.Day == day:
		return fmt.Sprintf("the table says that R$ %s came, and the statement that nothing did", c.Value)
	case !m.came.IsZero() && c.Day != day:
		return fmt.Sprintf("R$ %s came, and the table says that its money came on another day, or has not come: %s", m.came, cmp.Or(c.Day, "-"))
	case !m.came.IsZero() && m.came.Cmp(c.Value) != 0:
		return fmt.Sprintf("R$ %s came, and the table says R$ %s", m.came, c.Value)
	case m.left.Cmp(c.Value.Sub(c.Received)) > 0:
		return fmt.Sprintf("R$ %s left, and the table says that R$ %s of R$ %s are still here", m.left, c.Received, c.Value)
	}
	return ""
}
