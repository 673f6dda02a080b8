package idem

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Examine reports how the inbox's deliveries went, and how its spool and, of an outbox, its
// broker are. How its stored events and its workers are, package health asks Postgres.
func (i *Inbox) Examine(ctx context.Context, limits Limits) []Check {
	x := &examination{limits: limits, source: i.source.Name(), checks: i.Endpoint.Examine(ctx, limits)}
	x.examineFailing(i)
	if i.Spool != nil && limits.MaxSpooled > 0 {
		x.examineSpool(i)
	}
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

// spoolShare is the share of a spool that may be full, in percent.
const spoolShare = 80

// examineSpool adds the events of an inbox on the disk of this machine.
func (x *examination) examineSpool(i *Inbox) {
	i.Spool.scan(i)
	add := func(healthy bool, says string) { x.add("spool", healthy, says) }
	events, size := i.Spool.dir.Held()
	age := max(0, time.Since(i.Spool.dir.Oldest())).Round(time.Second)
	faults, aside := i.Spool.dir.Faults(), i.Spool.dir.Aside()
	switch unread := cmp.Or(faults.Read, faults.List); {
	case unread != nil:
		add(false, fmt.Sprintf("%d events wait, because the disk does not give them to this process: see the error in this application's log, "+
			"and put right what it says; if a file is lost for good, give it a name that ends in .damaged, and the rest goes on", events))
		x.because(unread)
	case faults.Write != nil:
		add(false, "nothing can be written to its directory, and what Postgres does not take is answered 503: see the error in this application's log, "+
			"and see that there is room and that this process may write")
		x.because(faults.Write)
	case aside > 0:
		add(false, fmt.Sprintf("%d files of events are set aside that the provider was told are kept: see the errors in this application's log; "+
			"have the provider deliver those events again, then delete the files whose names end in .refused and .damaged", aside))
	case events == 0:
		add(true, "it is empty")
	case age > x.limits.MaxSpooled:
		add(false, fmt.Sprintf("%d events have been on this machine's disk for up to %s, because Postgres does not take them: "+
			"see the errors in this application's log, and keep the disk", events, age))
	case size > i.Spool.MaxBytes/100*spoolShare:
		add(false, fmt.Sprintf("it is %d %% full: have Postgres take its events, or raise MaxBytes, before deliveries are answered 503", 100*size/max(1, i.Spool.MaxBytes)))
	default:
		add(true, fmt.Sprintf("%d events wait for Postgres, the oldest for %s", events, age))
	}
}
