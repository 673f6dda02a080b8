package idem

import (
	"context"
	"fmt"
	"time"
)

// Examine reports how the inbox's deliveries went, and of an outbox, how its
// broker is. How its stored events and its workers are, package health asks Postgres.
func (i *Inbox) Examine(ctx context.Context, limits Limits) []Check {
	x := &examination{limits: limits, source: i.source.Name(), checks: i.Endpoint.Examine(ctx, limits)}
	x.examineFailing(i)
	if _, ok := i.source.(dependent); ok && limits.MaxPending > 0 {
		x.examineBroker(i)
	}
	return x.checks
}

// examineBroker adds whether an outbox's broker takes messages. Those that wait for it
// are due again and again, so the age of due events does not show it.
func (x *examination) examineBroker(i *Inbox) {
	const name = "broker"
	since, err := i.outage()
	if err == nil {
		x.add(name, true, "it has taken the last message, or none was published yet")
		return
	}
	age := time.Since(since)
	x.add(name, age <= x.limits.MaxPending, fmt.Sprintf("it has taken no message for %s: "+
		"see the error in this application's log; the messages wait, and are published once it is available", age.Round(time.Second)))
	x.because(err)
}
