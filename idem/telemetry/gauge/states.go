package gauge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/latest"
)

// States reads the gauges. The zero value has none. Several goroutines may use it at once.
//
// Gauges are looked at more often than the state should be read: what is watched is read at most every 15
// seconds, however many look, and for 10 seconds at most.
type States struct {
	mu  sync.Mutex
	all []*state
}

// state is a reading of a source, for some of the gauges.
type state struct {
	what, source string
	up           *Metric // whether it could be read; nil for none
	record       latest.Value[func(Record)]
}

const (
	every = 15 * time.Second // between two readings
	limit = 10 * time.Second // for one
	wait  = 2 * time.Second  // of a looker
	stale = time.Minute      // the age at which a reading is dropped
)

// watch has a state read, unless that is done already.
func (s *States) watch(what, source string, up *Metric, read func(context.Context) (func(Record), error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.all, func(o *state) bool { return o.what == what && o.source == source }) {
		return
	}
	o := &state{what: what, source: source, up: up}
	o.record.Read, o.record.Fresh, o.record.Limit = read, every, limit
	o.record.Go = func(read func(context.Context)) bool {
		go read(context.Background())
		return true
	}
	s.all = append(s.all, o)
}

// WatchBacklog has the stored events of a source read. read is the method Stats of an [idem.Inbox].
func (s *States) WatchBacklog(source string, read func(context.Context) (idem.Stats, error)) {
	s.watch("backlog", source, backlogUp, func(ctx context.Context) (func(Record), error) {
		stats, err := read(ctx)
		return func(record Record) {
			for state, b := range map[idem.State]idem.Backlog{
				idem.StatePending: stats.Pending, idem.StateUnhandled: stats.Unhandled, idem.StateParked: stats.Parked,
			} {
				record(backlogEvents, float64(b.Events), source, string(state))
				record(backlogOldest, b.Oldest.Seconds(), source, string(state))
			}
			record(blocked, float64(stats.BlockedKeys), source)
		}, err
	})
}

// WatchQueues has a provider's queues read. source is the name of the source of the events that they hold,
// "asaas" for example. read is the method Queues of a [Queues].
//
// Each process calls read up to 2,880 times in 12 hours. Asaas allows an account 25,000 calls of its API in
// that time: if many processes share an account, let only a few of them watch.
func (s *States) WatchQueues(source string, read func(context.Context) ([]Queue, error)) {
	s.watch("queues", source, queueUp, func(ctx context.Context) (func(Record), error) {
		queues, err := read(ctx)
		return func(record Record) {
			for _, q := range distinct(queues) {
				record(queuePenalized, float64(q.Penalized), source, q.ID, q.Name)
				record(queueInterrupted, bit(q.Interrupted), source, q.ID, q.Name)
				if q.DeletesIn > 0 {
					record(queueDeletion, q.DeletesIn.Seconds(), source, q.ID, q.Name)
				}
			}
		}, err
	})
}

// WatchHealth has the checks of a health read:
//
//	collector.WatchHealth(h.Report)
//
// Most alerts are about them. There is one health: further calls have no effect.
func (s *States) WatchHealth(report func() health.Report) {
	s.watch("health", "", nil, func(context.Context) (func(Record), error) {
		all := worst(report().Checks)
		return func(record Record) {
			for name, c := range all {
				record(healthy, bit(c.Healthy), name.source, name.check)
				if c.Count != nil {
					record(counted, float64(*c.Count), name.source, name.check)
				}
			}
		}, nil
	})
}

// Read records all gauges, as they were read at most a minute ago. It waits for readings in progress for 2
// seconds at most. The gauges of a source that could not be read are absent, and its webhook.backlog.up or
// webhook.queue.up is 0; the error has the reasons.
func (s *States) Read(ctx context.Context, record Record) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	for _, o := range all {
		o.record.Refresh()
	}
	var errs []error
	for _, o := range all {
		r := o.record.Get(ctx)
		if r.At.IsZero() || time.Since(r.At) > stale {
			r.Err = errors.New("it takes long: see what the database is doing")
		}
		if o.up != nil {
			record(o.up, bit(r.Err == nil), o.source)
		}
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("reading the %s of %s: %w", o.what, o.source, r.Err))
			continue
		}
		r.Value(record)
	}
	return errors.Join(errs...)
}

// distinct returns queues without those for which a monitor refuses all metrics: a queue that the
// provider lists on two pages, because another was added in between, and bytes that are no text.
func distinct(queues []Queue) (some []Queue) {
	seen := make(map[string]bool)
	for _, q := range queues {
		q.ID, q.Name = text(q.ID), text(q.Name)
		if !seen[q.ID] {
			seen[q.ID] = true
			some = append(some, q)
		}
	}
	return some
}

type checkName struct{ source, check string }

// worst returns one result for each name, which passes if all checks of that name pass, and has their sum: two receivers
// may be of one source.
func worst(checks []check.Result) map[checkName]check.Result {
	all := make(map[checkName]check.Result)
	for _, c := range checks {
		name := checkName{text(c.Source), text(c.Name)}
		if before, ok := all[name]; ok {
			c.Healthy = c.Healthy && before.Healthy
			if c.Count != nil && before.Count != nil {
				c.Count = new(*c.Count + *before.Count)
			}
		}
		all[name] = c
	}
	return all
}

func text(s string) string { return strings.ToValidUTF8(s, "?") }

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
