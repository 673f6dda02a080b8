package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// story is the year, chapter by chapter.
var story = []func(*year, context.Context) error{
	(*year).ordinary, (*year).orderAfterEvent, (*year).refund, (*year).chargeback, (*year).byHand,
	(*year).holidays, (*year).token, (*year).secondAccount, (*year).weekend,
}

// ordinary is an ordinary day.
func (y *year) ordinary(ctx context.Context) error {
	for n := range 3 {
		id := fmt.Sprintf("order-%d", n+1)
		if err := y.order(ctx, id); err != nil {
			return err
		}
		c := y.charge(asaas.BillingTypePix, 12990, id, id)
		if err := y.happens(ctx, y.asaas, c, c.Received); err != nil {
			return err
		}
		if err := y.pass(ctx, day); err != nil {
			return err
		}
	}
	y.say("three orders were paid")
	return y.pass(ctx, 20*day)
}

// orderAfterEvent: Asaas is faster than the shop's own insert.
func (y *year) orderAfterEvent(ctx context.Context) error {
	c := y.charge(asaas.BillingTypePix, 4990, "order-early", "order-early")
	y.say("order-early is paid, and the shop has not stored it yet")
	if err := y.happens(ctx, y.asaas, c, c.Received); err != nil {
		return err
	}
	if err := y.version.Load().Drain(ctx); err != nil {
		return err
	}
	if err := y.list(ctx); err != nil {
		return err
	}
	if err := y.order(ctx, "order-early"); err != nil {
		return err
	}
	if err := y.pass(ctx, hour); err != nil {
		return err
	}
	y.say("order-early: %s", y.state(ctx, "order-early"))
	return y.pass(ctx, 20*day)
}

// refund: an old event comes again, after the newer one.
func (y *year) refund(ctx context.Context) error {
	if err := y.order(ctx, "order-back"); err != nil {
		return err
	}
	c := y.charge(asaas.BillingTypePix, 7550, "order-back", "order-back")
	if err := y.happens(ctx, y.asaas, c, c.Received); err != nil {
		return err
	}
	if err := y.pass(ctx, 2*day); err != nil {
		return err
	}
	if err := y.happens(ctx, y.asaas, c, c.Refunded); err != nil {
		return err
	}
	if err := y.pass(ctx, day); err != nil {
		return err
	}
	for _, e := range y.asaas.Timeline() {
		if e.Kind == asaastest.Queued && e.EventType == asaas.EventPaymentReceived {
			y.asaas.Resend(e.EventID) // a person at Asaas sends all payments again
		}
	}
	if err := y.pass(ctx, day); err != nil {
		return err
	}
	y.say("order-back was refunded, then each PAYMENT_RECEIVED came again: %s", y.state(ctx, "order-back"))
	return y.pass(ctx, 10*day)
}

// chargeback: a card is disputed, the merchant wins, and the payment is received again.
func (y *year) chargeback(ctx context.Context) error {
	if err := y.order(ctx, "order-card"); err != nil {
		return err
	}
	c := y.charge(asaas.BillingTypeCreditCard, 29900, "order-card", "order-card")
	for _, next := range []func() []byte{
		c.Confirmed, c.Received, c.ChargebackRequested, c.ChargebackDispute, c.AwaitingChargebackReversal, c.Received,
	} {
		if err := y.happens(ctx, y.asaas, c, next); err != nil {
			return err
		}
		if err := y.pass(ctx, day); err != nil {
			return err
		}
	}
	y.say("order-card: the chargeback is won, PAYMENT_RECEIVED came twice: %s", y.state(ctx, "order-card"))
	return nil
}

// byHand: somebody makes a charge in Asaas's own page.
func (y *year) byHand(ctx context.Context) error {
	c := y.charge(asaas.BillingTypePix, 100, "", "a charge made by hand")
	if err := y.happens(ctx, y.asaas, c, c.Received); err != nil {
		return err
	}
	if err := y.pass(ctx, day); err != nil {
		return err
	}
	y.say("a charge made by hand is booked, and belongs to no order")
	return nil
}

// holidays: the server is gone for 17 days, and the office is empty. Asaas stops the queue,
// and after 14 days deletes the events in it.
func (y *year) holidays(ctx context.Context) error {
	y.say("the server is gone, and everybody on holiday")
	stopped := y.asaas.Now()
	y.down.Store(true)
	for n := range 17 {
		if n < 2 || n == 16 {
			id := fmt.Sprintf("order-holiday-%d", n+1)
			if err := y.order(ctx, id); err != nil {
				return err
			}
			c := y.charge(asaas.BillingTypePix, int64(1000+n), id, id)
			if err := y.happens(ctx, y.asaas, c, c.Received); err != nil {
				return err
			}
		}
		if err := y.pass(ctx, day); err != nil {
			return err
		}
	}
	y.down.Store(false)
	y.say("the server is back")
	if err := y.recover(ctx, oldToken); err != nil {
		return err
	}
	if err := y.pass(ctx, 2*day); err != nil {
		return err
	}
	return y.reconcile(ctx, stopped)
}

// reconcile finds the events that never came, and repairs their effects.
func (y *year) reconcile(ctx context.Context, since time.Time) error {
	for progress, err := range asaas.Reconcile(ctx, y.asaas.Client(), asaas.Reconciliation{
		WebhookID: y.webhook, Events: y, Since: since.Add(-day), Until: y.asaas.Now(),
	}) {
		if err != nil {
			return err
		}
		if d := progress.Difference; d != nil {
			y.say("reconcile: %s: missing %v", y.names[d.Charge], d.Missing)
			if err := y.repair(ctx, d); err != nil {
				return err
			}
		}
		if progress.Step == asaas.ReconcileDone {
			y.say("reconcile: %d charges compared, %d repaired", progress.Counts.Charges, progress.Counts.Differences)
		}
	}
	return y.pass(ctx, 30*day)
}

// token: it is changed in the application, and not at Asaas.
func (y *year) token(ctx context.Context) error {
	y.say("a new token is deployed, and Asaas has the old one")
	y.deploy(version{tokens: []string{newToken}})
	if err := y.order(ctx, "order-token"); err != nil {
		return err
	}
	c := y.charge(asaas.BillingTypePix, 8000, "order-token", "order-token")
	if err := y.happens(ctx, y.asaas, c, c.Received); err != nil {
		return err
	}
	for range 12 {
		if err := y.pass(ctx, hour); err != nil {
			return err
		}
		if y.red["refused"] { // the person on call gets up
			break
		}
	}
	if !y.red["refused"] {
		return errors.New("nobody was told that the token is wrong")
	}
	y.say("on call: both tokens are accepted until Asaas has the new one")
	y.deploy(version{tokens: []string{newToken, oldToken}})
	if err := y.recover(ctx, oldToken); err != nil {
		return err
	}
	if err := y.pass(ctx, day); err != nil {
		return err
	}
	y.say("order-token: %s", y.state(ctx, "order-token"))
	return y.pass(ctx, 30*day)
}

// secondAccount: the first one has no scope, and keeps none.
func (y *year) secondAccount(ctx context.Context) error {
	y.say("a branch opens, with an account of its own")
	y.deploy(version{tokens: []string{newToken, oldToken}, branch: true})
	for n, account := range []*asaastest.Fake{y.asaas, y.branch} {
		id := fmt.Sprintf("order-account-%d", n+1)
		if err := y.order(ctx, id); err != nil {
			return err
		}
		c := y.charge(asaas.BillingTypePix, 5000, id, id)
		if err := y.happens(ctx, account, c, c.Received); err != nil {
			return err
		}
		if err := y.pass(ctx, day); err != nil {
			return err
		}
	}
	for _, e := range y.asaas.Timeline() { // events without a scope are still known
		if e.Kind == asaastest.Queued && e.EventType == asaas.EventPaymentRefunded {
			y.asaas.Resend(e.EventID)
		}
	}
	return y.pass(ctx, 60*day)
}

// weekend: a version with handlers that all fail is deployed on Friday.
func (y *year) weekend(ctx context.Context) error {
	if err := y.until(ctx, time.Friday, 17); err != nil {
		return err
	}
	y.say("Friday: a version is deployed whose handlers fail")
	y.deploy(version{tokens: []string{newToken, oldToken}, branch: true, broken: true})
	for n := range 8 {
		id := fmt.Sprintf("order-weekend-%d", n+1)
		if err := y.order(ctx, id); err != nil {
			return err
		}
		c := y.charge(asaas.BillingTypePix, int64(2000+n), id, id)
		if err := y.happens(ctx, y.asaas, c, c.Received); err != nil {
			return err
		}
		if err := y.pass(ctx, 6*hour); err != nil {
			return err
		}
	}
	if !y.red["handlers"] && !y.red["retrying"] {
		return errors.New("nobody was told that the handlers fail")
	}
	if err := y.until(ctx, time.Monday, 9); err != nil {
		return err
	}
	y.say("Monday: the mended version is deployed, and what waits or is parked goes to the workers")
	y.deploy(version{tokens: []string{newToken, oldToken}, branch: true})
	ana := operator.New(y.version.Load(), "ana@shop")
	ana.RequeueWithoutWorkers = true // Drain works, when time passes
	n, err := ana.Requeue(ctx, idem.Filter{States: []idem.State{idem.StatePending, idem.StateParked}}, "the weekend")
	if err != nil {
		return err
	}
	y.say("on call: idem requeue: %d events", n)
	return y.pass(ctx, y.begin.AddDate(1, 0, 0).Sub(y.asaas.Now()))
}

// recover gets the queue going again.
func (y *year) recover(ctx context.Context, token string) error {
	said := ""
	for progress, err := range asaas.Recover(ctx, y.asaas.Client(), y.webhook, token, y.version.Load()) {
		if err != nil {
			return err
		}
		if now, _, _ := strings.Cut(progress.String(), ", since "); now != said { // the database's time is not the story's
			y.say("on call: asaas-queue recover: %s", now)
			said = now
		}
	}
	return nil
}

// list prints the events that are not done.
func (y *year) list(ctx context.Context) error {
	for e, err := range y.version.Load().List(ctx, idem.Filter{States: []idem.State{idem.StatePending, idem.StateParked}}) {
		if err != nil {
			return err
		}
		y.say("on call: idem list: %s of %s: %s, %s", e.Type, y.names[e.Key], e.State, e.LastError)
	}
	return nil
}

// state returns the shop's record of an order.
func (y *year) state(ctx context.Context, order string) (state string) {
	const query = `select case when refunded_at is not null then 'refunded' when paid_at is not null then 'paid' else 'open' end from orders where id = $1`
	if err := y.books.QueryRow(ctx, query, order).Scan(&state); err != nil {
		return err.Error()
	}
	return state
}
