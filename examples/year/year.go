package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/optional"
)

// year is the shop, its account at Asaas, later a second one, and its observers.
type year struct {
	*shop
	asaas, branch *asaastest.Fake
	webhook       string // its id, of the first account
	watch         *asaas.WebhookWatch
	charges       []*asaastest.Charge
	names         map[string]string // charges by id, as the story names them

	out   io.Writer
	red   map[string]bool // checks of health that fail
	begin time.Time
}

// wanted are the events that the shop's handlers are for.
var wanted = []asaas.EventType{asaas.EventPaymentConfirmed, asaas.EventPaymentReceived, asaas.EventPaymentRefunded}

func newYear(ctx context.Context, pool *pgxpool.Pool, out io.Writer) (*year, error) {
	s, err := newShop(ctx, pool)
	if err != nil {
		return nil, err
	}
	y := &year{shop: s, asaas: asaastest.New(), branch: asaastest.New(), names: map[string]string{}, out: out, red: map[string]bool{}}
	y.begin = y.asaas.Now()
	y.deploy(version{tokens: []string{oldToken}})
	y.webhook = y.asaas.AddWebhook(asaastest.Webhook{Name: "shop", Token: oldToken, Handler: s, Events: wanted})
	y.branch.AddWebhook(asaastest.Webhook{Name: "branch", Token: branchToken, Handler: s, Events: wanted})
	y.asaas.Observe = func(e asaastest.Entry) {
		switch e.Kind {
		case asaastest.Emailed:
			y.say("Asaas writes an e-mail: %d deliveries failed", e.Attempt)
		case asaastest.Paused:
			y.say("Asaas stops the queue")
		case asaastest.Resumed:
			y.say("Asaas starts the queue")
		case asaastest.Deleted:
			y.say("Asaas deletes an event of %s for good", e.EventType)
		}
	}
	events := asaas.NewDispatcher(oldToken)
	events.OnPaymentConfirmed(paid)
	events.OnPaymentReceived(received)
	events.OnPaymentRefunded(refunded)
	url := y.asaas.Webhook(y.webhook).URL
	y.watch = asaas.NewWebhookWatch(y.asaas.Client(), asaas.WebhookSettings{Name: "shop", URL: url, Email: "ops@example.com", Token: oldToken}, events)
	return y, nil
}

func (y *year) end() {
	y.asaas.Close()
	y.branch.Close()
}

// say prints a line of the story.
func (y *year) say(format string, args ...any) {
	fmt.Fprintf(y.out, "%s  %s\n", y.asaas.Now().In(asaas.Brasilia()).Format("2006-01-02 15:04"), fmt.Sprintf(format, args...))
}

// charge makes a charge for an order, or by hand without one.
func (y *year) charge(billing asaas.BillingType, cents int64, order, name string) *asaastest.Charge {
	c := asaastest.NewCharge(billing, asaas.Cents(cents))
	if order != "" {
		c.Payment.ExternalReference = optional.Of(order)
	}
	y.charges = append(y.charges, c)
	y.names[c.Payment.ID] = name
	c.Now = y.asaas.Now().In(asaas.Brasilia())
	c.Created() // the shop wants no event of that
	return c
}

// happens has an account send the event that next makes of the charge, when it is time.
func (y *year) happens(ctx context.Context, at *asaastest.Fake, c *asaastest.Charge, next func() []byte) error {
	if now := at.Now().In(asaas.Brasilia()); c.Now.Before(now) {
		c.Now = now
	}
	body := next()
	if err := y.pass(ctx, c.Now.Sub(at.Now())); err != nil {
		return err
	}
	at.Emit(body)
	at.Settle()
	return nil
}

// until has time pass until it is this hour of that day of the week.
func (y *year) until(ctx context.Context, weekday time.Weekday, clock int) error {
	now := y.asaas.Now().In(asaas.Brasilia())
	then := time.Date(now.Year(), now.Month(), now.Day(), clock, 0, 0, 0, asaas.Brasilia())
	for then.Weekday() != weekday || then.Before(now) {
		then = then.AddDate(0, 0, 1)
	}
	return y.pass(ctx, then.Sub(now))
}

const (
	hour = time.Hour
	day  = 24 * hour
)

// pass has time pass in both accounts, for the workers and for the observers: every
// three hours, and once a day in weeks in which nothing happens.
func (y *year) pass(ctx context.Context, d time.Duration) error {
	every := 3 * hour
	if d > 5*day {
		every = day
	}
	for d > 0 && ctx.Err() == nil {
		step := min(d, every)
		d -= step
		y.asaas.Advance(step)
		y.branch.Advance(y.asaas.Now().Sub(y.branch.Now()))
		if err := y.shop.pass(ctx, step); err != nil {
			return err
		}
		if !y.down.Load() {
			if err := y.version.Load().Drain(ctx); err != nil { // the workers
				return err
			}
		}
		if err := y.look(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// look prints health as a monitor reports it, when it changes.
func (y *year) look(ctx context.Context) error {
	if _, err := y.watch.Look(ctx); err != nil {
		return err
	}
	parts := []health.Part{y.watch}
	if !y.down.Load() {
		parts = append(parts, y.shop)
	}
	h := health.New(parts...)
	h.Logger = nil
	for _, c := range h.Report().Checks {
		if c.Healthy == !y.red[c.Name] {
			continue
		}
		y.red[c.Name] = !c.Healthy
		if c.Healthy {
			y.say("monitor: %s is well again", c.Name)
			continue
		}
		y.say("monitor: %s fails: %s", c.Name, c.Says)
	}
	return nil
}

// Arrivals are those of the inbox in the story's time: the database has the real one.
func (y *year) Arrivals(ctx context.Context, scope string, keys []string, since time.Time) ([]idem.StoredEvent, error) {
	ahead := time.Until(y.asaas.Now())
	all, err := y.version.Load().Arrivals(ctx, scope, keys, since.Add(-ahead))
	for n := range all {
		all[n].ReceivedAt = all[n].ReceivedAt.Add(ahead)
	}
	return all, err
}
