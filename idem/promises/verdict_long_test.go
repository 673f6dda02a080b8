//go:build long

package promises_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Postgres crashes under a handler again and again, which counts as a failure at most: no event is parked
// by that, and each is done in the end.
func TestPostgresThatCrashesAgainAndAgainParksNobody(t *testing.T) {
	t.Parallel()
	const crashes = 5
	cluster := startCluster(t)
	m := openApp(t, openPool(t, cluster.URL(), asUsual))
	m.Inbox = m.NewInbox(m.Pool)
	running, goOn := make(chan bool), make(chan bool)
	done := false
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if !done {
			running <- true
			<-goOn
		}
		return pay(ctx, tx, n)
	})
	crash := func() {
		t.Helper()
		if err := errors.Join(cluster.Crash(t.Context()), cluster.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	answers := make(chan int)
	for range crashes {
		go func() {
			status, _ := m.Deliver(paid("e1"))
			answers <- status
		}()
		<-running
		crash()
		goOn <- true
		if status := <-answers; status != http.StatusServiceUnavailable {
			t.Errorf("a delivery under which Postgres has crashed is answered %d, want 503", status)
		}
	}
	m.Store(letter("e2", "o2", 1))
	m.Start(m.Inbox)
	for range crashes {
		<-running
		crash()
		goOn <- true
		m.WantWorked(idem.Retrying)
	}
	<-running
	done = true
	goOn <- true
	m.WantWorked(idem.Done)
	if status, answer := m.Deliver(paid("e1")); status != http.StatusOK {
		t.Errorf("the last delivery is answered %d %s", status, answer)
	}
	m.WantEffects(2)
	if parked := queryOne[int](m, `select count(*) from idem_events where state <> 'done' or attempts > $1`, crashes); parked > 0 {
		t.Errorf("%d events are not done, or failed more often than Postgres has crashed", parked)
	}
}

// Old databases have encodings that lack characters of an error's text.
func TestFailureIsCountedWhateverTheDatabasesEncoding(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "WIN1252"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			admin := idemtest.Pool(t)
			var name string
			if err := admin.QueryRow(t.Context(), `select current_schema()`).Scan(&name); err != nil {
				t.Fatal(err)
			}
			execAll(t, admin, `create database `+name+` encoding '`+encoding+`' lc_collate 'C' lc_ctype 'C' template template0`)
			t.Cleanup(func() {
				if _, err := admin.Exec(context.Background(), `drop database `+name+` with (force)`); err != nil {
					t.Error(err)
				}
			})
			s := openApp(t, openPool(t, admin.Config().ConnString(), func(c *pgxpool.Config) {
				c.ConnConfig.Database = name
				c.ConnConfig.RuntimeParams["search_path"], c.ConnConfig.RuntimeParams["client_encoding"] = "public", "UTF8"
			}))
			s.openInbox()
			s.Inbox.MaxAttempts = 1
			says := func(error) string { return "não há 😀" }
			s.First.RedactError, s.Inbox.RedactError = says, says
			s.On(payAndFail)
			idem.Handle(&s.Notes.Routes, "odd", func(context.Context, pgx.Tx, *struct{ ID int }) error { return nil })
			s.WantAnswer(`{"id":"undecoded","type":"odd"}`, http.StatusOK)
			s.Store(letter("worker", "o2", 1))
			s.Drain(1)
			s.WantReplayed(idem.Filter{IDs: []string{"undecoded"}}, idem.Replayed{Failed: 1})
			const columns = `(state, last_error, (select jsonb_array_length(failures) from idem_payloads p where p.event = idem_events.event))`
			s.WantRow("undecoded", columns, `(parked,"n?o h? ?",2)`)
			s.WantRow("worker", columns, `(parked,"n?o h? ?",1)`)
		})
	}
}
