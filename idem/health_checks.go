package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// examination is one look of a Health at its parts.
type examination struct {
	health  *Health
	report  HealthReport
	causes  []error                // of the checks, nil of most; for the log only: they may name hosts and users
	reached map[*pgxpool.Pool]bool // whether its Postgres is well
}

func (x *examination) add(source, name string, healthy bool, says string) {
	x.report.Healthy = x.report.Healthy && healthy
	x.report.Checks = append(x.report.Checks, HealthCheck{Source: source, Name: name, Healthy: healthy, Says: says})
	x.causes = append(x.causes, nil)
}

// because notes the cause of what the last check says.
func (x *examination) because(err error) {
	x.causes[len(x.causes)-1] = err
}

func (p *Processor) examine(ctx context.Context, x *examination) {
	p.examineReceiver(ctx, x)
	x.examineAge(ctx, &p.Common, retrying(x.health))
	advice := "events were left to workers, and a Processor has none: have it Replay those that are pending, or have an Inbox run"
	if p.HandToInbox {
		advice = "see that workers of an Inbox run, and that its handlers do not hang"
	}
	x.examineAge(ctx, &p.Common, due(x.health, &p.Common, advice))
	x.examineHeld(ctx, &p.Common)
}

func (i *Inbox) examine(ctx context.Context, x *examination) {
	i.examineReceiver(ctx, x)
	advice := "no workers run in this process: have idem.Serve or Inbox.Run run them, here or in another one"
	if i.runs.Load() > 0 {
		advice = "workers run and do not keep up: see in the log whether handlers hang, or raise Workers"
	}
	x.examineAge(ctx, &i.Common, due(x.health, &i.Common, advice))
	x.examineAge(ctx, &i.Common, ahead(x.health))
	x.examineHeld(ctx, &i.Common)
	if i.Spool != nil && x.health.MaxSpooled > 0 {
		x.examineSpool(i)
	}
	if _, ok := i.source.(dependent); ok && x.health.MaxPending > 0 {
		x.examineBroker(i)
	}
}

// examineBroker adds whether an outbox's broker takes messages. Those that wait for it
// are due again and again, so the age of what is due does not show it.
func (x *examination) examineBroker(i *Inbox) {
	const name = "broker"
	since, err := i.outage()
	if err == nil {
		x.add(i.source.Name(), name, true, "it has taken the last message, or none was published yet")
		return
	}
	age := time.Since(since)
	x.add(i.source.Name(), name, age <= x.health.MaxPending, fmt.Sprintf("it has taken no message for %s: "+
		"see the error in this application's log; the messages wait, and are published once it is available", age.Round(time.Second)))
	x.because(err)
}

func (r *Relay) examine(_ context.Context, x *examination) { r.examineDeliveries(x) }

// spoolShare is how full a spool may be, in percent.
const spoolShare = 80

// examineSpool adds what an inbox has on the disk of this machine.
func (x *examination) examineSpool(i *Inbox) {
	i.Spool.scan(i)
	add := func(healthy bool, says string) { x.add(i.source.Name(), "spool", healthy, says) }
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
	case age > x.health.MaxSpooled:
		add(false, fmt.Sprintf("%d events have been on this machine's disk for up to %s, because Postgres does not take them: "+
			"see the errors in this application's log, and keep the disk", events, age))
	case size > i.Spool.MaxBytes/100*spoolShare:
		add(false, fmt.Sprintf("it is %d %% full: have Postgres take its events, or raise MaxBytes, before deliveries are answered 503", 100*size/max(1, i.Spool.MaxBytes)))
	default:
		add(true, fmt.Sprintf("%d events wait for Postgres, the oldest for %s", events, age))
	}
}

func (c *Canary) examine(_ context.Context, x *examination) {
	const name = "canary"
	last, since := c.Last(), x.health.since
	if last.At.After(since) {
		since = last.At
	}
	switch {
	case last.Failing():
		says := last.Err.Error()
		if _, ok := errors.AsType[*unanswered](last.Err); ok {
			says = fmt.Sprintf("idem: canary %s: %s: see the error in this application's log", c.Name, noAnswerSays)
		}
		x.add(c.Name, name, false, says)
		x.because(last.Err)
	case time.Since(since) > 3*c.Every+c.Timeout:
		x.add(c.Name, name, false, "it does not run: give it to idem.Serve")
	case last.At.IsZero():
		x.add(c.Name, name, true, "it has not been delivered yet")
	case last.Err != nil:
		x.add(c.Name, name, true, "it failed once, and is tried again")
	default:
		x.add(c.Name, name, true, "it was handled")
	}
}

// examineReceiver adds what a Processor and an Inbox have in common.
func (c *Common) examineReceiver(ctx context.Context, x *examination) {
	if _, known := x.reached[c.pool]; !known {
		x.reached[c.pool] = x.examinePostgres(ctx, c)
	}
	c.examineDeliveries(x)
}

// examineDeliveries adds whether deliveries fail.
func (in *Receiving) examineDeliveries(x *examination) {
	if x.health.MaxFailures <= 0 {
		return
	}
	n := in.failures.Load()
	says := fmt.Sprintf("%d deliveries have failed in a row", n)
	healthy := n < int64(x.health.MaxFailures)
	if !healthy {
		says += ": the provider will slow down its queue, and stop it (Asaas after 15): see the errors in this application's log, and put right what they say"
	}
	x.add(in.source.Name(), "deliveries", healthy, says)
}

// examinePostgres tells whether the receiver's Postgres answers.
func (x *examination) examinePostgres(ctx context.Context, c *Common) (well bool) {
	const name = "postgres"
	ctx, cancel := context.WithTimeout(ctx, x.health.Timeout)
	defer cancel()
	readOnly, err := ask(ctx, c.pool, store.IsReadOnly)
	switch {
	case err != nil:
		x.add(c.source.Name(), name, false, fmt.Sprintf("it did not answer within %s: it is unavailable or refuses connections, the network is broken, "+
			"or all connections of the pool are in use: see the error in this application's log", x.health.Timeout))
		x.because(err)
	case readOnly:
		x.add(c.source.Name(), name, false, "it is read-only, as a replica is: connect to the primary, with target_session_attrs=read-write for example")
	default:
		x.add(c.source.Name(), name, true, "it answers")
	}
	return err == nil && !readOnly
}

// ageLimit is a check of how old the oldest event in some state is.
type ageLimit struct {
	name   string
	limit  time.Duration
	query  func(ctx context.Context, db store.DB, source string) (time.Duration, error)
	well   string // with a %s for the age
	wrong  string // the same
	advice string
}

func retrying(h *Health) ageLimit {
	return ageLimit{
		name: "retrying", limit: h.MaxRetrying, query: store.OldestRetrying,
		well: "the oldest event that fails came %s ago", wrong: "an event has failed for %s",
		advice: "fix what its error says, see idem.Common.List; if the provider does not deliver it again, replay it",
	}
}

func due(h *Health, c *Common, advice string) ageLimit {
	limit := h.MaxPending
	if limit > 0 {
		limit += c.Timeout // it is due while it is being processed, too
	}
	return ageLimit{
		name: "workers", limit: limit, query: store.OldestDue,
		well: "the oldest event that is due waits for %s", wrong: "an event has been due for %s", advice: advice,
	}
}

// aheadMost is how far in the future an event may have arrived: commits take their time,
// and clocks are put right by a little all the time.
const aheadMost = time.Minute

func ahead(h *Health) ageLimit {
	limit := aheadMost
	if h.MaxPending <= 0 {
		limit = 0
	}
	return ageLimit{
		name: "clock", limit: limit,
		query: func(ctx context.Context, db store.DB, source string) (time.Duration, error) {
			return store.Ahead(ctx, db, source, aheadMost)
		},
		well: "events arrived up to %s in the future", wrong: "by the database's clock, an event arrived %s in the future",
		advice: "the clock was put back, and what arrived before waits until it is that late again: put it right, or requeue the events that are pending",
	}
}

// ageOf names an age that is remembered.
type ageOf struct {
	common *Common
	name   string
}

// age is what was found at the last look.
type age struct {
	oldest time.Duration
	err    error
	next   time.Time // when to look again
}

// ageShare is how much longer than a look took it is until the next one: it reads
// all that is not done.
const ageShare = 20

// examineAge adds a check of the oldest event.
func (x *examination) examineAge(ctx context.Context, c *Common, l ageLimit) {
	if l.limit <= 0 {
		return
	}
	if !x.reached[c.pool] {
		x.add(c.source.Name(), l.name, true, "it is not known while Postgres is not well")
		return
	}
	a := x.health.age(ageOf{c, l.name}, func() (time.Duration, error) { return limited(ctx, x.health, c, l.query) })
	switch oldest := a.oldest.Round(time.Second); {
	case a.err != nil:
		x.addUnknown(c, l.name, a.err)
	case a.oldest > l.limit:
		x.add(c.source.Name(), l.name, false, fmt.Sprintf(l.wrong, oldest)+": "+l.advice)
	case a.oldest == 0:
		x.add(c.source.Name(), l.name, true, "there is none")
	default:
		x.add(c.source.Name(), l.name, true, fmt.Sprintf(l.well, oldest))
	}
}

// addUnknown adds a check for which the events could not be read.
func (x *examination) addUnknown(c *Common, name string, err error) {
	switch {
	case pgtx.SQLState(err) == queryCanceled, errors.Is(err, context.DeadlineExceeded):
		x.add(c.source.Name(), name, true, "it is not known: so many events are not done that it takes too long to look: see idem.Common.Stats")
	case pgtx.Unavailable(err):
		x.add(c.source.Name(), name, true, "it is not known: the connection was lost, it will be looked at again")
	default:
		x.add(c.source.Name(), name, false, "the events cannot be read: see the error in this application's log; have idem.Migrate run at start")
	}
	x.because(err)
}

// heldCheck is the name of the check of entities that stand still.
const heldCheck = "held"

// standing is what was found at the last look.
type standing struct {
	store.Standing
	err  error
	next time.Time // when to look again
}

// examineHeld adds whether events wait behind a parked one.
func (x *examination) examineHeld(ctx context.Context, c *Common) {
	if !x.reached[c.pool] {
		x.add(c.source.Name(), heldCheck, true, "it is not known while Postgres is not well")
		return
	}
	known, ok := x.health.standing[c]
	if start := time.Now(); !ok || !start.Before(known.next) {
		known.Standing, known.err = limited(ctx, x.health, c, store.FindStanding)
		known.next = time.Now().Add(ageShare * time.Since(start))
		x.health.standing[c] = known
	}
	switch {
	case known.err != nil:
		x.addUnknown(c, heldCheck, known.err)
	case known.Lanes > 0:
		x.add(c.source.Name(), heldCheck, false, fmt.Sprintf("%d events of %d entities wait for a parked one: first %d of %s, %s, for %s: "+
			"fix what its error says, see idem.Common.Blocked, and replay it, or discard it to give it up; if it is done, have idem.Serve or Processor.Run run",
			known.Waiting, known.Lanes, known.Behind, known.Key, strings.Join(known.Types, " "), known.Head))
	default:
		x.add(c.source.Name(), heldCheck, true, "no event waits for a parked one")
	}
}

// queryCanceled is the SQLSTATE of a statement that took too long.
const queryCanceled = "57014"

// age looks at the oldest event, unless it has lately.
func (h *Health) age(of ageOf, look func() (time.Duration, error)) age {
	if known, ok := h.ages[of]; ok && time.Now().Before(known.next) {
		return known
	}
	start := time.Now()
	oldest, err := look()
	a := age{oldest, err, time.Now().Add(ageShare * time.Since(start))}
	h.ages[of] = a
	return a
}

// limited asks Postgres, which gives up after Timeout: a connection is not lost
// because there is much to read.
func limited[T any](ctx context.Context, h *Health, c *Common, query func(context.Context, store.DB, string) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*h.Timeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := store.LimitTime(ctx, tx, h.Timeout); err != nil {
			return err
		}
		answer, err = query(ctx, tx, c.source.Name())
		return err
	})
	return answer, err
}
