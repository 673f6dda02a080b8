package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Postgres is stopped hard, twice, while events are delivered and worked on. The
// workers' commits are not waited for, so that some are undone, with the record
// that they were made. What was acknowledged is there, and is worked on again.
func TestInboxOutlivesPostgresThatCrashesUnderLoad(t *testing.T) {
	t.Parallel()
	const events, keys = 400, 40
	cluster := &idemtest.Cluster{}
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	s := openShop(t, openPool(t, cluster.URL(), func(c *poolConfig) { c.MaxConns = 8 }))
	s.exec(`alter table effects add column place bigserial, add column queue text`)
	inbox := idem.NewInbox(s.pool, s.notes)
	inbox.Logger = nil
	inbox.Workers, inbox.Poll = 4, 10*time.Millisecond
	handled := make(chan struct{}, 100*events)
	inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done || o.Outcome == idem.Unknown {
			handled <- struct{}{}
		}
	}
	s.on(payInOrder)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- inbox.Run(ctx) }()

	var outage sync.RWMutex // nobody need try while it lasts
	var acknowledged, refused atomic.Int64
	progress := make(chan int64)
	for d := range 8 {
		go func() {
			for n := d; n < events; n += 8 { // a key is one deliverer's, who sends it in order
				for o, err := inbox.Accept(t.Context(), nth(n, keys)); err != nil; o, err = inbox.Accept(t.Context(), nth(n, keys)) {
					if t.Context().Err() != nil {
						return
					}
					if o.Acknowledged() {
						t.Errorf("%d is %s, with %v", n, o, err)
					}
					outage.RLock()
					refused.Add(1)
					outage.RUnlock()
				}
				progress <- acknowledged.Add(1)
			}
		}()
	}
	for n := range progress {
		if n == events/4 || n == events/2 {
			outage.Lock()
			crash(s, cluster, func() {
				if o, err := inbox.Accept(t.Context(), nth(events-1, keys)); err == nil {
					t.Errorf("an event is %s while Postgres is away", o)
				}
			})
			outage.Unlock()
		}
		if n == events {
			break
		}
	}
	s.pool.Reset() // the queries of this test are not to meet connections that died
	// Each event that is not done yet will be observed when it is.
	for queryOne[int](s, `select count(*) from idem_events where state <> 'done'`) > 0 {
		select {
		case <-handled:
		case err := <-ended:
			t.Fatalf("Run ended with %v", err)
		case <-time.After(20 * time.Second): // a last resort
			t.Fatalf("events are not worked on: %s", queryOne[string](s, `
select string_agg(concat_ws(' ', event, state, attempts, crashes, due_at, last_error), E'\n') from idem_events where state <> 'done'`))
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	t.Logf("%d deliveries met the crashes", refused.Load())
	s.wantEffects(events)
	wantEachOnceInOrder(s)
}

// crash stops Postgres, and starts it again after what happens meanwhile. With
// it end all claims.
func crash(s *shop, cluster *idemtest.Cluster, meanwhile func()) {
	s.Helper()
	if err := cluster.Crash(s.Context()); err != nil {
		s.Fatal(err)
	}
	meanwhile()
	if err := cluster.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// payInOrder is pay with the order of the effects.
func payInOrder(ctx context.Context, tx pgx.Tx, n *note) error {
	_, err := tx.Exec(ctx, `insert into effects (event, queue) values ($1, $2)`, n.ID, n.Order)
	return err
}

// A thousand deliveries of one event at once are one event.
func TestTwinsAreStoredOnceAndAllGet200(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(pay)
	inbox, done := s.working(s.pool)
	s.url = serveInbox(t, inbox)
	release := make(chan struct{})
	if statuses := s.twins(1000, paid("e1"), release); statuses[http.StatusOK] != 1000 {
		t.Errorf("answers: %v, want 1000 times 200", statuses)
	}
	<-done
	s.wantState("e1", idem.StateDone)
	s.wantEffects(1)
}

// Each event comes to two servers at the same moment, each with a pool of its
// own and with workers. Of one pair one server is inline, of the other none is.
func TestSameEventAtTwoServersAtOnceHasOneEffect(t *testing.T) {
	t.Parallel()
	for _, modes := range []string{"two inboxes", "an inbox and a processor"} {
		t.Run(modes, func(t *testing.T) {
			t.Parallel()
			const events = 150
			url := idemtest.URL(t)
			s := openShop(t, openPool(t, url, func(*poolConfig) {}))
			s.on(pay)
			first, done := s.working(s.pool)
			var second http.Handler = s.processor
			if modes == "two inboxes" {
				other, alsoDone := s.working(openPool(t, url, func(*poolConfig) {}))
				second = other
				go func() {
					for range alsoDone {
						done <- struct{}{}
					}
				}()
			}
			urls := []string{serveInbox(t, first), serveInbox(t, second)}
			for n := range events {
				s.deliverToAll(urls, fmt.Sprintf(`{"id":"%d","type":"paid","order":"storm-%d"}`, n, n%20))
			}
			for queryOne[int](s, `select count(*) from idem_events where state <> 'done'`) > 0 {
				select {
				case <-done:
				case <-time.After(20 * time.Second): // a last resort
					t.Fatal("events are not worked on")
				}
			}
			s.wantEffects(events)
			if n := queryOne[int](s, `select count(distinct event) from effects`); n != events {
				t.Errorf("%d events have an effect, want %d", n, events)
			}
		})
	}
}

// working is an inbox with workers, and tells when they have done an event.
func (s *shop) working(on *pool) (inbox *idem.Inbox, done chan struct{}) {
	inbox, done = idem.NewInbox(on, s.notes), make(chan struct{}, 10_000)
	inbox.Logger = nil
	inbox.Poll = 10 * time.Millisecond
	inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done {
			done <- struct{}{}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- inbox.Run(ctx) }()
	s.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return inbox, done
}

func serveInbox(t *testing.T, h http.Handler) (url string) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// deliverToAll delivers a body to several servers at once, and again to those
// that do not acknowledge it, as a provider does.
func (s *shop) deliverToAll(urls []string, body string) {
	start := make(chan struct{})
	var deliveries sync.WaitGroup
	for _, url := range urls {
		deliveries.Go(func() {
			<-start
			for {
				status, err := postTo(s.Context(), url, body)
				if err != nil {
					s.Error(err)
					return
				}
				if status == http.StatusOK {
					return
				}
			}
		})
	}
	close(start)
	deliveries.Wait()
}

func postTo(ctx context.Context, url, body string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("token", "right")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}
