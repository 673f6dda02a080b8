package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/port"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestHealthTurnsRedBeforeTheProviderStopsItsQueue(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	broken := true
	s.On(func(context.Context, pgx.Tx, *note) error {
		if broken {
			return errors.New("a mistake")
		}
		return nil
	})
	for range 4 {
		s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	}
	s.WantHealth("4 in a row", s.NewHealth(s.First), "", "")
	s.WantAnswer(paid("e2"), http.StatusServiceUnavailable)
	s.WantHealth("5 in a row", s.NewHealth(s.First), "deliveries", "5 deliveries have failed in a row: handler_failed 5: see the errors in this application's log, and put right what they say, before the provider slows down its queue")
	lenient := s.NewHealth(s.First)
	lenient.MaxFailures = 6
	s.WantHealth("6 are allowed", lenient, "", "")
	lenient = s.NewHealth(s.First)
	lenient.MaxFailures = 0
	s.WantHealth("it does not look", lenient, "", "")
	broken = false
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantHealth("one was acknowledged", s.NewHealth(s.First), "", "")
}

func TestStrangersDoNotMakeHealthRed(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for status, token := range map[int]string{401: "wrong", 503: "none"} {
		for range 5 {
			if got, _, err := s.Post(t.Context(), paid("e1"), map[string]string{"token": token}); got != status || err != nil {
				t.Fatalf("a delivery with the token %q is answered %d, %v", token, got, err)
			}
		}
		if token == "wrong" {
			s.WantHealth("their token is wrong", s.NewHealth(s.First), "", "")
			s.First = s.NewFirst()
			continue
		}
		s.WantHealth("there is no token to verify with", s.NewHealth(s.First), "deliveries", "5 deliveries have failed")
		s.First = s.NewFirst()
	}
	unsure := map[string]string{"token": "unsure"}
	for range 5 {
		_, _, _ = s.Post(t.Context(), paid("e1"), unsure)
	}
	s.WantHealth("accounts cannot be looked up", s.NewHealth(s.First), "deliveries", "5 deliveries have failed")
}

func TestAnEventThatFailsForLongMakesHealthRed(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("a mistake") })
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	s.Inbox.MaxAttempts = 2
	s.WantAnswer(newBody, http.StatusOK) // unhandled, and of no age
	s.Store(letter("failing", "o2", 0))
	s.Drain()
	age := func(minutes int) {
		s.Exec(fmt.Sprintf(`update idem_payloads set received_at = now() - interval '%d minutes'`, minutes))
	}
	age(9)
	s.WantHealth("9 minutes", s.NewHealth(s.Inbox), "", "")
	age(11)
	s.WantHealth("11 minutes", s.NewHealth(s.Inbox), "failing", "1 event fails, and no workers are alive to try it again: put right what the error says, and deploy it; then start the program")
	s.WantHealth("another process of the source says so, too", s.NewHealth(s.First), "failing", "1 event fails")
	off := s.NewHealth(s.Inbox)
	off.MaxFailing = 0
	s.WantHealth("it does not look", off, "", "")
	s.Exec(`update idem_payloads set due_at = now() where event like '%failing'`)
	s.Drain(1)
	s.WantHealth("it is parked", s.NewHealth(s.Inbox), "parked", "1 event is parked, until a person acts: first failing, paid")
}

// Their handlers run twice.
func TestFirstTriesThatTakeLongerThanAnswerWithinMakeHealthRed(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.WorkersElsewhere("notes")
	ran := 0
	s.On(func(ctx context.Context, _ pgx.Tx, _ *note) error {
		ran++
		<-ctx.Done()
		return ctx.Err()
	})
	s.First.AnswerWithin = 20 * time.Millisecond
	for n := 0; ran < 20; n++ { // a try of which the time is over before its handler runs says nothing
		if ran == 19 {
			s.WantHealth("19 are too few to say", s.NewHealth(s.First), "", "")
		}
		s.WantAnswer(about(fmt.Sprint(n), "paid", fmt.Sprint(n)), http.StatusOK)
	}
	s.WantHealth("20 of 20", s.NewHealth(s.First), "answer within", "of the last 20 first tries 20 took too long: their handlers run again in workers")
}

func TestEventsThatNoWorkerTakesMakeHealthRed(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(_ context.Context, _ pgx.Tx, n *note) error {
		if n.ID == "e1" {
			close(entered)
			<-release
		}
		return nil
	})
	s.Store(letter("e1", "o1", 1), letter("e2", "o1", 2))
	due := func(minutes int) {
		s.Exec(fmt.Sprintf(`update idem_payloads set due_at = now() - interval '%d minutes' where event like '%%/e1'`, minutes))
	}
	s.Exec(`update idem_payloads set due_at = null, received_at = now() - interval '1 hour' where event like '%/e2'`) // it waits for e1
	due(-10)
	s.WantHealth("it waits for its next attempt", s.NewHealth(s.Inbox), "", "")
	off := s.NewHealth(s.Inbox)
	off.MaxPending = 6 * time.Minute
	due(6) // and Timeout beside
	s.WantHealth("it is drained from time to time", off, "", "")
	s.Exec(`update idem_payloads set due_at = now() where event like '%/e1'`)
	s.WantHealth("it has just become due", s.NewHealth(s.Inbox), "", "")
	s.Exec(`update idem_payloads set due_at = now() - interval '16 seconds' where event like '%/e1'`)
	s.WantHealth("nobody takes it", s.NewHealth(s.Inbox), "workers", "no workers are alive, and 2 events wait for them")
	due(6)
	off = s.NewHealth(s.Inbox)
	off.MaxPending = 0
	s.WantHealth("it does not look", off, "", "")
	stop := s.Start(s.Inbox)
	<-entered
	s.WantHealth("its handler hangs", s.NewHealth(s.Inbox), "workers", "workers run and do not keep up")
	close(release)
	s.WantWorked(idem.Done, idem.Done)
	stop()
	s.WantHealth("they are done", s.NewHealth(s.Inbox), "", "")
}

// What was done is done again there, and everything else looks well.
func TestAPathToOtherTablesThanThoseOfTheEventsIsRed(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Store(letter("e1", "o1", 1))
	s.Drain(1)
	var schema string
	if err := s.Pool.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	own := schema + "_own"
	t.Cleanup(func() {
		if _, err := s.Pool.Exec(context.Background(), `drop schema `+own+` cascade`); err != nil {
			t.Error(err)
		}
	})
	s.Exec(`create schema ` + own)
	if err := idem.MigrateSchema(t.Context(), s.Pool, own); err != nil {
		t.Fatal(err)
	}
	moved := openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = own + ", " + schema })
	s.WantHealth("as it was", s.NewHealth(s.Inbox), "", "")
	s.WantHealth("somebody has changed it", s.NewHealth(s.NewInbox(moved)), "postgres", "those that are done there run again when they are delivered again")
	s.Exec(`update idem_events set received_at = now() - interval '32 days'`)
	s.WantHealth("nothing of before is delivered again", s.NewHealth(s.NewInbox(moved)), "", "")
}

// A handler has it, and all else waits.
func TestAPoolOfOneConnectionIsAWarning(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for connections, want := range map[int32]bool{1: true, 2: false} {
		pool := openPool(t, s.Pool.Config().ConnString(), func(c *pgxpool.Config) { c.MaxConns = connections })
		for _, c := range s.NewHealth(newFirst(pool, s.Notes)).Report().Checks {
			if c.Name == "postgres" && (!c.Healthy || c.Warning != want) {
				t.Errorf("of %d it says %+v", connections, c)
			}
		}
	}
}

func TestPostgresThatIsNotWellMakesHealthRedInTime(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	open := func(url string) *pgxpool.Pool {
		p, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	full := poolOf(t, 1)
	conn, err := full.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	readOnly := openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" })
	const soon = 200 * time.Millisecond
	for reason, c := range map[string]struct {
		pool        *pgxpool.Pool
		timeout     time.Duration
		check, says string
	}{
		"nobody listens":           {open("postgres://joana:secret-1@" + strings.TrimPrefix(port.Gone(t), "http://") + "/shop"), soon, "postgres", "it did not answer within 200ms"},
		"nobody answers":           {open("postgres://joana:secret-1@" + silent(t) + "/shop?sslmode=disable"), soon, "postgres", "it did not answer within 200ms"},
		"all connections are used": {full, soon, "postgres", "all connections of the pool are in use"},
		"it is a replica":          {readOnly, patience, "postgres", "it is read-only"},
		"it has no tables":         {idemtest.Pool(t), patience, "postgres", "the events cannot be read: the tables are missing, or were changed"},
	} {
		h := s.NewHealth(newFirst(c.pool, s.Notes))
		h.Timeout, h.MaxPending = c.timeout, 0
		start := time.Now()
		s.WantHealth(reason, h, c.check, c.says)
		if d := time.Since(start); d > patience {
			t.Errorf("%s: it took %s", reason, d)
		}
		if said := fmt.Sprintf("%+v", h.Report()); strings.Contains(said, "joana") || strings.Contains(said, "127.0.0.1") || strings.Contains(said, "secret-1") {
			t.Errorf("%s: it tells a stranger: %s", reason, said)
		}
	}
	if log := s.Logged(); !strings.Contains(log, "webhook health check fails") || !strings.Contains(log, "joana") || strings.Contains(log, "secret-1") {
		t.Errorf("the log does not tell the cause:\n%s", log)
	}
}

func TestCanaryThatFailsOrDoesNotRunMakesHealthRed(t *testing.T) {
	t.Parallel()
	s := &app{&testkit.Shop{TB: t}}
	synctest.Test(t, func(t *testing.T) {
		way := &scriptedWay{answers: []string{"", "", fine}}
		c := newCanary("https://shop.example/hooks", "right")
		c.Transport = way
		h := s.NewHealth(c)
		for n, want := range []struct{ reason, check, says string }{
			{"not delivered yet", "", ""},
			{"failed once", "", ""},
			{"failed twice", "canary", "canary: notes: there was no answer"},
			{"recovered", "", ""},
		} {
			if n > 0 {
				_ = c.Send(t.Context())
			}
			s.WantHealth(want.reason, h, want.check, want.says)
			time.Sleep(c.Every)
		}
		time.Sleep(3 * c.Every)
		s.WantHealth("it was stopped", h, "canary", "it does not run: have the program run it, as it runs the inbox")
		h = s.NewHealth(newCanary("https://shop.example/hooks", "right"))
		time.Sleep(2 * time.Minute)
		s.WantHealth("it was never started", h, "canary", "it does not run: have the program run it, as it runs the inbox")
	})
	if n := strings.Count(s.Logged(), "webhook health check fails"); n != 3 {
		t.Errorf("%d lines tell that it fails, want 3:\n%s", n, s.Logged())
	}
	if n := strings.Count(s.Logged(), "webhook health check is well again"); n != 1 {
		t.Errorf("%d lines tell that it is well again, want 1:\n%s", n, s.Logged())
	}
}

// Whoever may ask may be anybody: hosts, users and addresses are for the log.
func TestHealthSaysNoCauseOfACanarysFailure(t *testing.T) {
	t.Parallel()
	s := &app{&testkit.Shop{TB: t}}
	c := newCanary("https://shop.example/hooks?key=hidden", "right")
	c.Transport = wayWithASecret{}
	h := s.NewHealth(c)
	for range 2 {
		_ = c.Send(t.Context())
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if body := w.Body.String(); w.Code != 503 || !strings.Contains(body, "see whether the application runs") || strings.Contains(body, "10.0.0.7") || strings.Contains(body, "hidden") {
		t.Errorf("%d %s", w.Code, body)
	}
	if !strings.Contains(s.Logged(), "10.0.0.7") {
		t.Errorf("the log has no cause: %s", s.Logged())
	}
}

func TestHealthOfNothingIsLiveness(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	health.New().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez", nil))
	if w.Code != http.StatusOK || w.Body.String() != `{"healthy":true,"checks":[]}` {
		t.Errorf("it is answered %d %s", w.Code, w.Body)
	}
}

func TestHealthHasTheChecksOfEachReceiver(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	var names []string
	for _, c := range s.NewHealth(s.First, s.Inbox).Report().Checks {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{
		"postgres", "deliveries", "refused", "handlers", "answer within", "workers", "clock", "failing", "parked", "standing",
		"postgres", "deliveries", "refused", "handlers", "workers", "clock", "failing", "parked", "standing",
	}, names); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}

// silent is a Postgres that takes connections and says nothing.
func silent(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// wayWithASecret fails as a Transport of an application does that says too much.
type wayWithASecret struct{}

func (wayWithASecret) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("10.0.0.7 knows no %s", r.URL)
}
