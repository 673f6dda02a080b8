package gauge_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// counter is a source that counts how often it is read, and at once.
type counter struct {
	takes    time.Duration
	fails    error
	deaf     bool // ignores its context
	reads    atomic.Int64
	now, max atomic.Int64
}

func (c *counter) read(ctx context.Context) (idem.Stats, error) {
	c.max.Store(max(c.max.Load(), c.now.Add(1)))
	defer c.now.Add(-1)
	n := c.reads.Add(1)
	if c.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(c.takes):
		return idem.Stats{BlockedKeys: n}, c.fails
	case <-ctx.Done():
		return idem.Stats{}, ctx.Err()
	}
}

// look returns what one looker is told of a source: the value, and whether that could be read.
func look(s *gauge.States) (value float64, up bool, err error) {
	err = s.Read(context.Background(), func(m *gauge.Metric, v float64, _ ...string) {
		switch m.Name {
		case "webhook.blocked.entities":
			value = v
		case "webhook.backlog.up":
			up = v == 1
		}
	})
	return value, up, err
}

func want(t *testing.T, s *gauge.States, value float64) {
	t.Helper()
	if got, up, err := look(s); got != value || up != (value > 0) || up != (err == nil) {
		t.Errorf("it is %v, up %t, %v, want %v", got, up, err, value)
	}
}

func TestManyLookersCauseOneReadIn15Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{takes: time.Second}
		var s gauge.States
		s.WatchBacklog("a", c.read)
		for round := range 3 {
			var lookers sync.WaitGroup
			for range 100 {
				lookers.Go(func() { want(t, &s, float64(round+1)) })
			}
			lookers.Wait()
			time.Sleep(15 * time.Second)
			want(t, &s, float64(round+1))
			time.Sleep(time.Second)
		}
		if c.reads.Load() != 3 || c.max.Load() != 1 {
			t.Errorf("it was read %d times, %d at once; want 3, 1", c.reads.Load(), c.max.Load())
		}
	})
}

func TestNoLookerWaitsLongForASlowRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{takes: 5 * time.Second}
		var s gauge.States
		s.WatchBacklog("a", c.read)
		start := time.Now()
		want(t, &s, 0) // nothing is known yet
		if waited := time.Since(start); waited != 2*time.Second {
			t.Errorf("it waited for %s, want 2s", waited)
		}
		time.Sleep(4 * time.Second)
		want(t, &s, 1)
		time.Sleep(18 * time.Second)
		want(t, &s, 1) // the next reading has begun
		time.Sleep(5 * time.Second)
		want(t, &s, 2)
	})
}

// A read that does not end is not followed by another, and the value that was read before
// is told for a minute only.
func TestReadThatHangsIsTheOnlyOneAndItsSampleBecomesStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		var s gauge.States
		s.WatchBacklog("a", c.read)
		want(t, &s, 1)
		c.takes, c.deaf = 10*time.Minute, true
		for range 3 {
			time.Sleep(15 * time.Second)
			want(t, &s, 1)
		}
		for range 10 {
			time.Sleep(15 * time.Second)
			want(t, &s, 0)
		}
		if c.reads.Load() != 2 || c.max.Load() != 1 {
			t.Errorf("it was read %d times, %d at once; want 2, 1", c.reads.Load(), c.max.Load())
		}
		time.Sleep(10 * time.Minute)
	})
}

func TestFailedReadIsToldAtOnceAndNotRepeatedBeforeItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{fails: errors.New("no database")}
		var s gauge.States
		s.WatchBacklog("a", c.read)
		for range 5 {
			if _, up, err := look(&s); up || !errors.Is(err, c.fails) {
				t.Errorf("it is up %t, %v, want the error", up, err)
			}
		}
		if c.reads.Load() != 1 {
			t.Errorf("it was read %d times, want 1", c.reads.Load())
		}
	})
}

func TestReadHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{takes: time.Hour}
		var s gauge.States
		s.WatchBacklog("a", c.read)
		want(t, &s, 0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if _, _, err := look(&s); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v, want that the deadline passed", err)
		}
	})
}

func TestOneSourceThatFailsHangsOrPanicsDoesNotHideAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s gauge.States
		s.WatchBacklog("a", func(context.Context) (idem.Stats, error) { return idem.Stats{}, errors.New("no database") })
		s.WatchBacklog("b", func(context.Context) (idem.Stats, error) { panic("oops") })
		s.WatchBacklog("c", (&counter{takes: time.Hour}).read)
		s.WatchBacklog("d", func(context.Context) (idem.Stats, error) { return idem.Stats{BlockedKeys: 3}, nil })
		s.WatchBacklog("d", func(context.Context) (idem.Stats, error) { return idem.Stats{BlockedKeys: 4}, nil }) // one of each name
		value, _, err := look(&s)
		const failures = "reading the backlog of a: no database\nreading the backlog of b: panic: oops\nreading the backlog of c: it takes long: see what the database is doing"
		if value != 3 || err == nil || err.Error() != failures {
			t.Errorf("it is %v, %v", value, err)
		}
		time.Sleep(time.Hour)
	})
}

func Example() {
	record := func(m *gauge.Metric, value float64, labels ...string) {
		fmt.Println(m.Name, labels, value)
	}
	gauge.Observe(idem.Observation{
		Source: "asaas", Stage: idem.StageDelivery, Label: "PAYMENT_RECEIVED", Outcome: idem.Done, Duration: 20 * time.Millisecond,
	}, record)

	var states gauge.States
	states.WatchHealth(func() health.Report {
		return health.Report{Checks: []check.Result{{Source: "asaas", Name: "workers", Healthy: true}}}
	})
	if err := states.Read(context.Background(), record); err != nil {
		fmt.Println(err)
	}
	// Output:
	// webhook.deliveries [asaas PAYMENT_RECEIVED done] 1
	// webhook.delivery.duration [asaas PAYMENT_RECEIVED] 0.02
	// webhook.healthy [asaas workers] 1
}

// A renderer takes the labels by their places, and fails if one is missing.
func TestEachMetricIsRecordedWithItsLabels(t *testing.T) {
	t.Parallel()
	recorded := make(map[string]bool)
	record := func(m *gauge.Metric, _ float64, labels ...string) {
		recorded[m.Name] = true
		if len(labels) != len(m.Labels) {
			t.Errorf("%s has the labels %v, and is recorded with %v", m.Name, m.Labels, labels)
		}
	}
	events := asaas.NewDispatcher("a token")
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	pool, err := pgxpool.New(t.Context(), "postgres://localhost/unused")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	gauge.Begin(&idem.NewInbox(pool, events).Endpoint, record)
	now := time.Now()
	for _, o := range []idem.Observation{
		{Stage: idem.StageDelivery, Outcome: idem.Refused, Err: &idem.Refusal{Reason: "wrong_token"}},
		{Stage: idem.StageDelivery, Outcome: idem.Pending, Relayed: time.Second, Conflict: true},
		{Stage: idem.StageAttempt, Outcome: idem.Done, Event: idem.Event{OccurredAt: now.Add(-time.Hour)}},
	} {
		o.Source, o.Label, o.Duration = "asaas", "PAYMENT_RECEIVED", time.Second
		gauge.Observe(o, record)
	}
	var states gauge.States
	states.WatchBacklog("asaas", func(context.Context) (idem.Stats, error) { return idem.Stats{}, nil })
	states.WatchBacklog("broken", func(context.Context) (idem.Stats, error) { return idem.Stats{}, errors.New("no database") })
	states.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) {
		return []gauge.Queue{{ID: "1", DeletesIn: time.Hour}}, nil
	})
	states.WatchQueues("broken", func(context.Context) ([]gauge.Queue, error) { return nil, errors.New("no API key") })
	states.WatchHealth(func() health.Report {
		return health.Report{Checks: []check.Result{{Source: "asaas", Name: "parked", Count: new(int64(1))}}}
	})
	err = states.Read(t.Context(), record)
	if want := "reading the backlog of broken: no database\nreading the queues of broken: no API key"; err == nil || err.Error() != want {
		t.Errorf("got the error %v, want %s", err, want)
	}
	for _, m := range gauge.Metrics() {
		if !recorded[m.Name] {
			t.Errorf("%s is never recorded", m.Name)
		}
	}
}

func TestGaugesAreWhatWasRead(t *testing.T) {
	t.Parallel()
	var states gauge.States
	states.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) {
		return []gauge.Queue{
			{ID: "1", Name: "shop", Penalized: 3, Interrupted: true, DeletesIn: time.Hour},
			{ID: "2", Name: "shop\xff"},
			{ID: "1", Name: "shop"}, // on the next page, again
		}, nil
	})
	states.WatchHealth(func() health.Report { // two receivers are of one source
		return health.Report{Checks: []check.Result{
			{Source: "asaas", Name: "workers", Healthy: true},
			{Source: "asaas", Name: "workers"},
			{Source: "asaas", Name: "deliveries"},
			{Source: "asaas", Name: "deliveries", Healthy: true},
			{Source: "mailer\xff", Name: "mails", Healthy: true},
			{Source: "asaas", Name: "unmatched", Count: new(int64(2))},
			{Source: "asaas", Name: "unmatched", Count: new(int64(3))},
		}}
	})
	got := make(map[string]float64)
	if err := states.Read(t.Context(), func(m *gauge.Metric, value float64, labels ...string) {
		name := fmt.Sprint(m.Name, labels)
		if _, twice := got[name]; twice {
			t.Errorf("%s is recorded twice", name)
		}
		got[name] = value
	}); err != nil {
		t.Error(err)
	}
	want := map[string]float64{
		"webhook.queue.up[asaas]":                  1,
		"webhook.queue.penalized[asaas 1 shop]":    3,
		"webhook.queue.penalized[asaas 2 shop?]":   0,
		"webhook.queue.interrupted[asaas 1 shop]":  1,
		"webhook.queue.interrupted[asaas 2 shop?]": 0,
		"webhook.queue.deletion[asaas 1 shop]":     3600,
		"webhook.healthy[asaas workers]":           0,
		"webhook.healthy[asaas deliveries]":        0,
		"webhook.healthy[mailer? mails]":           1,
		"webhook.healthy[asaas unmatched]":         0,
		"webhook.check.found[asaas unmatched]":     5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}
