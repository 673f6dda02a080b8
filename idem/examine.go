package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// examination is one look at a part.
type examination struct {
	limits  Limits
	source  string
	reached bool // whether its Postgres is well
	checks  []Check
}

func (x *examination) add(name string, healthy bool, says string) {
	x.checks = append(x.checks, Check{Source: x.source, Name: name, Healthy: healthy, Says: says})
}

// because notes the cause of what the last check says.
func (x *examination) because(err error) {
	x.checks[len(x.checks)-1].Cause = err
}

// Examine reports how deliveries went: whether fewer than MaxFailures in a row have
// failed. See package health.
func (in *Endpoint) Examine(_ context.Context, limits Limits) []Check {
	x := &examination{limits: limits, source: in.source.Name()}
	in.examineDeliveries(x)
	return x.checks
}

// Examine reports how the processor, its deliveries and its stored events are. See
// package health.
func (p *Processor) Examine(ctx context.Context, limits Limits) []Check {
	x := p.examineReceiver(ctx, limits)
	x.examineAge(ctx, &p.Common, p.retryingLimit(limits))
	advice := "events were left to workers, and a Processor has none: have it Replay those that are pending, or have an Inbox run"
	if p.HandToInbox {
		advice = "see that workers of an Inbox run, and that its handlers do not hang"
	}
	x.examineAge(ctx, &p.Common, p.dueLimit(limits, advice))
	x.examineHeld(ctx, &p.Common)
	return x.checks
}

// Examine reports how the inbox, its deliveries, its stored events and its workers are.
// See package health.
func (i *Inbox) Examine(ctx context.Context, limits Limits) []Check {
	x := i.examineReceiver(ctx, limits)
	advice := "no workers run in this process: have idem.Serve or Inbox.Run run them, here or in another one"
	if i.runs.Load() > 0 {
		advice = "workers run and do not keep up: see in the log whether handlers hang, or raise Workers"
	}
	x.examineAge(ctx, &i.Common, i.dueLimit(limits, advice))
	x.examineAge(ctx, &i.Common, i.aheadLimit(limits))
	x.examineHeld(ctx, &i.Common)
	if i.Spool != nil && x.limits.MaxSpooled > 0 {
		x.examineSpool(i)
	}
	if _, ok := i.source.(dependent); ok && x.limits.MaxPending > 0 {
		x.examineBroker(i)
	}
	return x.checks
}

// examineBroker adds whether an outbox's broker takes messages. Those that wait for it
// are due again and again, so the age of what is due does not show it.
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

// spoolShare is how full a spool may be, in percent.
const spoolShare = 80

// examineSpool adds what an inbox has on the disk of this machine.
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

// examineReceiver begins to examine what a Processor and an Inbox have in common.
func (c *Common) examineReceiver(ctx context.Context, limits Limits) *examination {
	x := &examination{limits: limits, source: c.source.Name()}
	x.reached = x.examinePostgres(ctx, c)
	c.examineDeliveries(x)
	return x
}

// examineDeliveries adds whether deliveries fail.
func (in *Endpoint) examineDeliveries(x *examination) {
	if x.limits.MaxFailures <= 0 {
		return
	}
	n := in.failures.Load()
	says := fmt.Sprintf("%d deliveries have failed in a row", n)
	healthy := n < int64(x.limits.MaxFailures)
	if !healthy {
		says += ": the provider will slow down its queue, and stop it (Asaas after 15): see the errors in this application's log, and put right what they say"
	}
	x.add("deliveries", healthy, says)
}

// examinePostgres reports whether the receiver's Postgres answers.
func (x *examination) examinePostgres(ctx context.Context, c *Common) (well bool) {
	const name = "postgres"
	ctx, cancel := context.WithTimeout(ctx, x.limits.Timeout)
	defer cancel()
	readOnly, err := ask(ctx, c.pool, store.IsReadOnly)
	switch {
	case err != nil:
		x.add(name, false, fmt.Sprintf("it did not answer within %s: it is unavailable or refuses connections, the network is broken, "+
			"or all connections of the pool are in use: see the error in this application's log", x.limits.Timeout))
		x.because(err)
	case readOnly:
		x.add(name, false, "it is read-only, as a replica is: connect to the primary, with target_session_attrs=read-write for example")
	default:
		x.add(name, true, "it answers")
	}
	return err == nil && !readOnly
}

// ageLimit is a check of how old the oldest event in some state is.
type ageLimit struct {
	name   string
	limit  time.Duration
	last   *lastLook[time.Duration]
	query  func(ctx context.Context, db store.DB, source string) (time.Duration, error)
	well   string // with a %s for the age
	wrong  string // the same
	advice string
}

func (c *Common) retryingLimit(limits Limits) ageLimit {
	return ageLimit{
		name: "retrying", limit: limits.MaxRetrying, last: &c.looks.retrying, query: store.OldestRetrying,
		well: "the oldest event that fails came %s ago", wrong: "an event has failed for %s",
		advice: "fix what its error says, see idem.Common.List; if the provider does not deliver it again, replay it",
	}
}

func (c *Common) dueLimit(limits Limits, advice string) ageLimit {
	limit := limits.MaxPending
	if limit > 0 {
		limit += c.Timeout // it is due while it is being processed, too
	}
	return ageLimit{
		name: "workers", limit: limit, last: &c.looks.due, query: store.OldestDue,
		well: "the oldest event that is due waits for %s", wrong: "an event has been due for %s", advice: advice,
	}
}

// aheadMost is how far in the future an event may have arrived: commits take their time,
// and clocks are put right by a little all the time.
const aheadMost = time.Minute

func (c *Common) aheadLimit(limits Limits) ageLimit {
	limit := aheadMost
	if limits.MaxPending <= 0 {
		limit = 0
	}
	return ageLimit{
		name: "clock", limit: limit, last: &c.looks.ahead,
		query: func(ctx context.Context, db store.DB, source string) (time.Duration, error) {
			return store.Ahead(ctx, db, source, aheadMost)
		},
		well: "events arrived up to %s in the future", wrong: "by the database's clock, an event arrived %s in the future",
		advice: "the clock was put back, and what arrived before waits until it is that late again: put it right, or requeue the events that are pending",
	}
}

// examineAge adds a check of the oldest event.
func (x *examination) examineAge(ctx context.Context, c *Common, l ageLimit) {
	if l.limit <= 0 {
		return
	}
	if !x.reached {
		x.add(l.name, true, "it is not known while Postgres is not well")
		return
	}
	age, err := l.last.get(func() (time.Duration, error) { return limited(ctx, x.limits, c, l.query) })
	switch oldest := age.Round(time.Second); {
	case err != nil:
		x.addUnknown(l.name, err)
	case age > l.limit:
		x.add(l.name, false, fmt.Sprintf(l.wrong, oldest)+": "+l.advice)
	case age == 0:
		x.add(l.name, true, "there is none")
	default:
		x.add(l.name, true, fmt.Sprintf(l.well, oldest))
	}
}

// addUnknown adds a check for which the events could not be read.
func (x *examination) addUnknown(name string, err error) {
	switch {
	case pgtx.SQLState(err) == queryCanceled, errors.Is(err, context.DeadlineExceeded):
		x.add(name, true, "it is not known: so many events are not done that it takes too long to look: see idem.Common.Stats")
	case pgtx.Unavailable(err):
		x.add(name, true, "it is not known: the connection was lost, it will be looked at again")
	default:
		x.add(name, false, "the events cannot be read: see the error in this application's log; have idem.Migrate run at start")
	}
	x.because(err)
}

// heldCheck is the name of the check of entities that stand still.
const heldCheck = "held"

// examineHeld adds whether events wait behind a parked one.
func (x *examination) examineHeld(ctx context.Context, c *Common) {
	if !x.reached {
		x.add(heldCheck, true, "it is not known while Postgres is not well")
		return
	}
	known, err := c.looks.standing.get(func() (store.Standing, error) { return limited(ctx, x.limits, c, store.FindStanding) })
	switch {
	case err != nil:
		x.addUnknown(heldCheck, err)
	case known.Lanes > 0:
		x.add(heldCheck, false, fmt.Sprintf("%d events of %d entities wait for a parked one: first %d of %s, %s, for %s: "+
			"fix what its error says, see idem.Common.Blocked, and replay it, or discard it to give it up; if it is done, have idem.Serve or Processor.Run run",
			known.Waiting, known.Lanes, known.Behind, known.Key, strings.Join(known.Types, " "), known.Head))
	default:
		x.add(heldCheck, true, "no event waits for a parked one")
	}
}

// queryCanceled is the SQLSTATE of a statement that took too long.
const queryCanceled = "57014"

// limited asks Postgres, which gives up after Timeout: a connection is not lost
// because there is much to read.
func limited[T any](ctx context.Context, limits Limits, c *Common, query func(context.Context, store.DB, string) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*limits.Timeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := store.LimitTime(ctx, tx, limits.Timeout); err != nil {
			return err
		}
		answer, err = query(ctx, tx, c.source.Name())
		return err
	})
	return answer, err
}
