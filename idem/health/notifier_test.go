package health_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/internal/testkit"
)

// company is a number of processes that share a database, and the person whom they tell.
type company struct {
	*testing.T
	pool      *pgxpool.Pool
	processes []*process

	mu   sync.Mutex
	told []string
}

// process is one of them.
type process struct {
	*company
	*health.Notifier
	log strings.Builder
}

func newCompany(t *testing.T, processes int) *company {
	c := &company{T: t, pool: testkit.Open(t)}
	for range processes {
		p := &process{company: c, Notifier: &health.Notifier{DB: c.pool}}
		p.Notify, p.Logger = c.hear, slog.New(slog.NewTextHandler(&p.log, nil))
		c.processes = append(c.processes, p)
	}
	return c
}

// hear is a Notify.
func (c *company) hear(_ context.Context, r check.Result) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := r.Source + " " + r.Name + " fails"
	if r.Healthy {
		text = r.Source + " " + r.Name + " is over"
	}
	c.told = append(c.told, text)
	return nil
}

// sees has a process look, and see these results.
func (p *process) sees(results ...check.Result) {
	p.Health = healthOf(results...)
	p.Look(p.Context())
}

// all have all processes look at once, and see these results.
func (c *company) all(results ...check.Result) {
	var looking sync.WaitGroup
	for _, p := range c.processes {
		looking.Go(func() { p.sees(results...) })
	}
	looking.Wait()
}

// wantTold checks what was told since it was called last.
func (c *company) wantTold(when string, want ...string) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff(want, c.told); diff != "" {
		c.Errorf("%s (-want +told):\n%s", when, diff)
		for _, p := range c.processes {
			c.Log(p.log.String())
		}
	}
	c.told = nil
}

// use has all processes use a pool.
func (c *company) use(pool *pgxpool.Pool) {
	for _, p := range c.processes {
		p.DB = pool
	}
}

func (c *company) exec(sql string) { c.Helper(); testkit.Exec(c.T, c.pool, sql) }

// fails has all processes see that the check of the orders fails, and tell it.
func (c *company) fails() {
	c.Helper()
	c.all(orders)
	c.wantTold("at first sight")
	c.exec(minuteLater)
	c.all(orders)
	c.wantTold("a minute later", "shop orders fails")
}

const (
	minuteLater = `update idem_notices set since_at = since_at - interval '1 minute', until = until - interval '1 minute'`
	quietLater  = `update idem_notices set seen_at = seen_at - interval '5 minutes'`
)

var (
	orders = check.Result{Source: "shop", Name: "orders", Says: "9 orders wait"}
	sound  = check.Result{Source: "shop", Name: "orders", Healthy: true, Says: "none waits"}
)

func healthOf(results ...check.Result) *health.Health {
	h := health.New(worker(func(context.Context, check.Limits) []check.Result { return results }))
	h.Logger = nil
	return h
}

func TestOneOfManyProcessesTellsThatACheckFailsAndThatItIsOver(t *testing.T) {
	t.Parallel()
	c := newCompany(t, 10)
	c.fails()
	c.all(orders)
	c.wantTold("while it lasts")
	c.all(sound)
	c.wantTold("right after its end")
	c.exec(quietLater)
	c.processes[0].sees(orders)
	c.all(sound)
	c.wantTold("while one process still sees it")
	c.exec(quietLater)
	c.all(sound)
	c.wantTold("after its end", "shop orders is over")
	c.all(sound)
	c.wantTold("later")
	if n := testkit.QueryOne[int](t, c.pool, `select count(*) from idem_notices`); n != 0 {
		t.Errorf("%d notices are left", n)
	}
	c.fails()
}

func TestACheckThatStillFailsIsToldAgainEachDay(t *testing.T) {
	t.Parallel()
	c := newCompany(t, 2)
	c.fails()
	c.exec(`update idem_notices set told_at = told_at - interval '23 hours'`)
	c.all(orders)
	c.wantTold("after 23 hours")
	c.exec(`update idem_notices set told_at = told_at - interval '1 hour'`)
	c.all(orders)
	c.wantTold("after a day", "shop orders fails")
	c.all(orders)
	c.wantTold("later")
}

func TestACheckThatComesAndGoesIsToldOnce(t *testing.T) {
	t.Parallel()
	c := newCompany(t, 2)
	c.all(orders)
	c.all(sound)
	c.exec(quietLater)
	c.all(sound)
	c.exec(minuteLater)
	c.all(orders)
	c.wantTold("it failed once, and again long after")
	for range 5 { // four minutes of health between
		c.exec(minuteLater)
		c.exec(`update idem_notices set seen_at = seen_at - interval '4 minutes'`)
		c.all(sound)
		c.all(orders)
	}
	c.wantTold("it comes and goes", "shop orders fails")
}

func TestANoticeThatCouldNotBeToldIsToldAfterItsReservation(t *testing.T) {
	t.Parallel()
	for name, notify := range map[string]func(die func()) error{
		"Notify fails":     func(func()) error { return errors.New("the mail server is away") },
		"Notify panics":    func(func()) error { panic("a secret") },
		"the process dies": func(die func()) error { die(); return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCompany(t, 2)
			first, other := c.processes[0], c.processes[1]
			round := func(what string, seen check.Result) {
				ctx, die := context.WithCancel(t.Context())
				defer die()
				first.Notify = func(context.Context, check.Result) error { return notify(die) }
				first.Health = healthOf(seen)
				first.Look(ctx)
				if log := first.log.String(); ctx.Err() == nil && !strings.Contains(log, "could not be told") {
					t.Errorf("the log says %q", log)
				}
				other.sees(seen)
				c.wantTold(what + " while it is reserved")
				c.exec(minuteLater)
				other.sees(seen)
				c.wantTold(what+" later", "shop orders "+what)
			}
			first.sees(orders)
			c.exec(minuteLater)
			round("fails", orders)
			c.exec(quietLater)
			round("is over", sound)
		})
	}
}

// Whether the person knows that it was over is not known.
func TestACheckThatFailsAgainWhileItIsToldThatItIsOverIsToldAgain(t *testing.T) {
	t.Parallel()
	c := newCompany(t, 2)
	c.fails()
	c.exec(quietLater)
	c.processes[0].Notify = func(context.Context, check.Result) error { return errors.New("sent, and not answered") }
	c.processes[0].sees(sound)
	c.processes[1].sees(orders)
	c.wantTold("while it is reserved")
	c.exec(minuteLater)
	c.processes[1].sees(orders)
	c.wantTold("later", "shop orders fails")
}

func TestWhatIsToldIsACauseAndNoWarning(t *testing.T) {
	t.Parallel()
	var (
		postgres = check.Result{Source: "shop", Name: "postgres", Says: "it does not answer"}
		answers  = check.Result{Source: "shop", Name: "postgres", Healthy: true}
		canary   = check.Result{Source: "shop", Name: "canary", Says: "it did not come back"}
		other    = check.Result{Source: "bank", Name: "canary", Says: "it did not come back"}
		warning  = check.Result{Source: "shop", Name: "refused", Healthy: true, Warning: true}
	)
	c := newCompany(t, 1)
	c.all(canary, other, postgres, warning)
	c.exec(minuteLater)
	c.all(canary, other, postgres, warning)
	c.wantTold("Postgres fails, and what follows", "shop postgres fails", "bank canary fails")
	c.all(canary, other, answers, warning)
	c.wantTold("Postgres has just come back")
	c.exec(`update idem_notices set seen_at = seen_at - interval '5 minutes' where name = 'postgres'`)
	c.all(canary, other, answers, warning)
	c.wantTold("Postgres is well", "shop postgres is over")
	c.all(canary, other, answers, warning)
	c.wantTold("the canary has not come back", "shop canary fails")
}

func TestACheckThatIsNotKnownToBeWellIsNotOver(t *testing.T) {
	t.Parallel()
	silent := check.Result{Source: "*shop.Part", Name: "answer", Says: "it does not return"}
	for name, seen := range map[string][]check.Result{
		"it could not be looked at": {{Source: "shop", Name: "orders", Healthy: true, Unknown: true}},
		"its part does not answer":  {silent},
		"another part still fails":  {orders, sound},
		"one part of two is well":   {sound, {Source: "shop", Name: "orders", Healthy: true, Unknown: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCompany(t, 1)
			c.fails()
			c.exec(`update idem_notices set seen_at = seen_at - interval '2 hours'`)
			c.all(seen...)
			c.wantTold(name)
		})
	}
}

func TestACheckThatNoProcessHasAnyMoreIsOverAfterAnHour(t *testing.T) {
	t.Parallel()
	c := newCompany(t, 2)
	c.fails()
	c.exec(quietLater)
	c.all()
	c.wantTold("after five minutes")
	c.exec(`update idem_notices set seen_at = seen_at - interval '55 minutes'`)
	c.all()
	c.wantTold("after an hour", "shop orders is over")
}

func TestAPartThatAnswersAgainIsOver(t *testing.T) {
	t.Parallel()
	c := newCompany(t, 1)
	p := c.processes[0]
	look := func(panics bool) {
		p.Health = health.New(worker(func(context.Context, check.Limits) []check.Result {
			if panics {
				panic("a mistake")
			}
			return nil
		}))
		p.Health.Logger = nil
		p.Look(t.Context())
	}
	look(true)
	c.exec(minuteLater)
	look(true)
	c.wantTold("it panics", "health_test.worker answer fails")
	c.exec(quietLater)
	look(false)
	c.wantTold("it answers", "health_test.worker answer is over")
}

// What was reserved and seen then is in the future now.
func TestNoticesAreToldWhileTheDatabasesClockIsPutBack(t *testing.T) {
	t.Parallel()
	const back = `update idem_notices set since_at = since_at + interval '3 days', seen_at = seen_at + interval '3 days', until = now() + interval '3 days'`
	c := newCompany(t, 2)
	c.all(orders)
	c.exec(back)
	c.all(orders)
	c.exec(minuteLater)
	c.all(orders)
	c.wantTold("it fails", "shop orders fails")
	c.exec(back)
	c.all(sound)
	c.wantTold("it is over", "shop orders is over")
}

func TestEachProcessTellsByItselfWhilePostgresSharesNothing(t *testing.T) {
	t.Parallel()
	away, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none") // where no server listens
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(away.Close)
	for name, outage := range map[string]struct{ begin, end func(c *company) }{
		"the table is missing": {
			func(c *company) { c.exec(`alter table idem_notices rename to away`) },
			func(c *company) { c.exec(`alter table away rename to idem_notices`) },
		},
		"the table is of an earlier version": {
			func(c *company) { c.exec(`alter table idem_notices rename until to away`) },
			func(c *company) { c.exec(`alter table idem_notices rename away to until`) },
		},
		"it does not answer": {func(c *company) { c.use(away) }, func(c *company) { c.use(c.pool) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCompany(t, 2)
			known := check.Result{Source: "shop", Name: "mails", Says: "9 mails wait"}
			c.all(known)
			c.exec(minuteLater)
			c.all(known)
			c.wantTold("before", "shop mails fails")
			c.all(known) // and all know that

			outage.begin(c)
			c.all(known, orders)
			for _, p := range c.processes {
				p.Age(time.Minute)
			}
			c.all(known, orders)
			c.wantTold("during the outage", "shop orders fails", "shop orders fails")
			c.all(known, orders)
			c.wantTold("while it lasts")

			outage.end(c)
			c.all(sound)
			c.wantTold("after it")
			c.exec(quietLater)
			c.all(known, sound)
			c.wantTold("and over", "shop orders is over")
			c.all(known, sound)
			c.wantTold("later")
			for _, p := range c.processes {
				if log := p.log.String(); strings.Count(log, "by itself") != 1 || strings.Count(log, "one process again") != 1 || strings.Count(log, "\n") != 2 {
					t.Errorf("the log of a process is\n%s", log)
				}
			}
		})
	}
}
