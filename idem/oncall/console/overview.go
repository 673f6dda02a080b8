package console

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/lang"
)

// The largest age of the overview's numbers.
const (
	freshCounts = 5 * time.Second
	freshQueues = 30 * time.Second // providers limit how often they are asked
)

// summary is a source on the overview.
type summary struct {
	Source   string
	Stats    reading[operator.State]
	Backlogs []backlog
	Provider bool // whether its queues are known
	Queues   reading[[]gauge.Queue]
}

// backlog is the events in one state.
type backlog struct {
	State idem.State
	Means lang.Text
	Alarm bool
	idem.Backlog
	Change int64 // a minute, since an earlier look
}

// refresh starts readings of the source's counts and queues.
func (s *source) refresh(h *Handler) {
	s.counts.refresh(h.running, freshCounts, s.events.State)
	if q := h.Queues[s.name]; q != nil {
		s.held.refresh(h.running, freshQueues, q.Queues)
	}
}

func (v *visit) overview(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.moment)
	defer cancel()
	for _, s := range v.sources {
		s.refresh(v.Handler)
	}
	var all []summary
	for _, s := range v.sources {
		now, before := s.counts.get(ctx)
		if now.Err != nil {
			_, text := v.told(now.Err)
			now.Err = errors.New(text)
		}
		queues, _ := s.held.get(ctx)
		all = append(all, summary{Source: s.name, Stats: now, Backlogs: backlogs(now, before), Provider: v.Queues[s.name] != nil, Queues: queues})
	}
	return v.render(http.StatusOK, "overview", v.say("Overview"), all)
}

func backlogs(now, before reading[operator.State]) []backlog {
	n, b := now.Value, before.Value
	all := []backlog{
		{State: idem.StatePending, Means: "stored, workers are next", Backlog: n.Pending, Change: n.Pending.Events - b.Pending.Events},
		{State: idem.StateRetrying, Means: "failed, the provider delivers them again", Backlog: n.Retrying, Change: n.Retrying.Events - b.Retrying.Events},
		{State: idem.StateUnhandled, Means: "no handler when they came", Backlog: n.Unhandled, Change: n.Unhandled.Events - b.Unhandled.Events},
		{State: idem.StateParked, Means: "failed, and wait for you", Backlog: n.Parked, Change: n.Parked.Events - b.Parked.Events, Alarm: n.Parked.Events > 0},
	}
	for i := range all {
		all[i].Change = perMinute(all[i].Change, now.At.Sub(before.At))
		if before.At.IsZero() {
			all[i].Change = 0
		}
	}
	return all
}

func perMinute(n int64, in time.Duration) int64 {
	return int64(float64(n) / max(in.Minutes(), 1.0/60))
}

func (v *visit) blocked(ctx context.Context) error {
	shown, all, err := v.source.events.Blocked(ctx, maxShown)
	if err != nil {
		return err
	}
	for n := range shown {
		if !v.access.Reveal {
			shown[n].LastError = ""
		}
	}
	return v.render(http.StatusOK, "blocked", v.say("Blocked entities"), struct {
		All   int64
		Shown []operator.Blocked
	}{all, shown})
}

// provider holds the queues of a source, as its provider reports them.
type provider struct {
	Source string
	Queues reading[[]gauge.Queue]
}

func (v *visit) queues(ctx context.Context) error {
	var all []provider
	for _, s := range v.sources {
		if v.Queues[s.name] != nil {
			s.refresh(v.Handler)
		}
	}
	for _, s := range v.sources {
		if v.Queues[s.name] != nil {
			queues, _ := s.held.get(ctx)
			all = append(all, provider{s.name, queues})
		}
	}
	return v.render(http.StatusOK, "queues", v.say("Provider queues"), all)
}

// release resumes a provider's queue.
func (v *visit) release(context.Context) error {
	s, id := v.source, v.r.PostForm.Get("queue")
	queues := v.Queues[s.name]
	if queues == nil {
		return refuse(http.StatusNotFound, "The queues of this source are not known here.")
	}
	op, reason := v.operator(), reasonOf(v.r.PostForm)
	return v.begin("release", func(ctx context.Context) error {
		defer s.held.forget()
		return op.Record(ctx, "release queue", "queue "+id, reason, func(ctx context.Context) (string, error) { return queues.Release(ctx, id) })
	})
}

// latest holds the last reading of a value that may take a while to read.
type latest[T any] struct {
	mu      sync.Mutex
	now     reading[T]
	before  reading[T]    // an earlier one, of a minute ago at most if there was one
	stale   bool          // now is out of date
	reading chan struct{} // closed at the end of a reading; nil if there is none in progress
}

// reading is a value, and the time of reading it; At is zero if nothing was read yet.
type reading[T any] struct {
	Value T
	Err   error
	At    time.Time
	took  time.Duration
}

// readTime is the time that a reading may take, in the background.
const readTime = time.Minute

// refresh starts a reading in the background if the last one is older than fresh and older than ten times the
// time that it took: the page takes a tenth of the database's time at most. After a reading that failed the
// pause is only as long as that reading took, since a person waits for the end of the outage.
func (l *latest[T]) refresh(running *running, fresh time.Duration, read func(context.Context) (T, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause := 10 * l.now.took
	if l.now.Err != nil {
		pause = l.now.took
	}
	if l.reading != nil || !l.stale && time.Since(l.now.At) <= max(fresh, pause) {
		return
	}
	done := make(chan struct{})
	if running.look(func(ctx context.Context) { l.read(ctx, read, done) }) {
		l.reading, l.stale = done, false
	}
}

// get waits for a reading in progress until ctx ends. It returns the last reading, and an earlier one to
// compare it with.
func (l *latest[T]) get(ctx context.Context) (now, before reading[T]) {
	l.mu.Lock()
	wait := l.reading
	l.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.before
}

// forget makes the next refresh read again.
func (l *latest[T]) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

func (l *latest[T]) read(ctx context.Context, read func(context.Context) (T, error), done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var r reading[T]
	start := time.Now()
	r.Err = protect(ctx, func(ctx context.Context) (err error) {
		r.Value, err = read(ctx)
		return err
	})
	r.At, r.took = time.Now(), time.Since(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now.Err == nil && !l.now.At.IsZero() && r.At.Sub(l.before.At) > time.Minute {
		l.before = l.now
	}
	l.now, l.reading = r, nil
	close(done)
}
