package promises_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestDryRunTellsTheOutcomeAndStoresNothing(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, limit time.Duration, all ...mistake) {
		t.Parallel()
		pool, look := openForMistakes(t) // its one connection comes back
		s := openApp(t, pool)
		var wrong atomic.Pointer[mistake] // nil is a sound handler
		s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
			if err := pay(ctx, tx, n); err != nil {
				return err
			}
			if m := wrong.Load(); m != nil {
				return m.make(ctx, tx)
			}
			return nil
		})
		s.First.KeepPayloads = true
		s.First.Timeout = limit
		for _, m := range all {
			wrong.Store(&m)
			for range 2 {
				outcome, err := s.First.DryRun(t.Context(), letter("e1", "o1", 0))
				if outcome != idem.Retrying || err == nil {
					t.Errorf("a handler %s: DryRun = %s, %v, want retrying, because %s", m.name, outcome, err, m.reason)
				} else if said := err.Error(); !strings.Contains(said, m.says) || !strings.HasPrefix(said, "idem: dry run of paid e1: ") {
					t.Errorf("a handler %s: the error does not tell what was wrong, %q: %v", m.name, m.says, err)
				}
				look.WantContents([]string{})
			}
			wrong.Store(nil)
			if outcome, err := s.First.DryRun(t.Context(), letter("e1", "o1", 0)); outcome != idem.Done || err != nil {
				t.Errorf("after a handler %s: DryRun = %s, %v, want done", m.name, outcome, err)
			}
			look.WantContents([]string{})
		}
	}
	t.Run("mistakes", func(t *testing.T) { run(t, patience, mistakes...) })
	for _, m := range testkit.First(0, hanging) {
		t.Run(m.name, func(t *testing.T) { run(t, 5*time.Second, m) })
	}
}

// A handler that ignores the end of its time holds up nobody but itself.
func TestDryRunOfAHandlerThatHangsIsAnswered(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var entered atomic.Bool
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		entered.Store(true)
		<-release
		return pay(ctx, tx, n)
	})
	s.First.Timeout = 100 * time.Millisecond
	answer := make(chan error, 1)
	go func() {
		ctx := context.WithoutCancel(t.Context())
		outcome, err := s.First.DryRun(ctx, letter("e1", "o1", 0))
		for !entered.Load() { // the time is short on a busy machine
			outcome, err = s.First.DryRun(ctx, letter("e1", "o1", 0))
		}
		if outcome != idem.Retrying || err == nil || !strings.Contains(err.Error(), "did not return in time") {
			t.Errorf("DryRun = %s, %v", outcome, err)
		}
		answer <- err
	}()
	testkit.Next(t, answer)
	s.WantContents([]string{}) // over the pool's one connection: there is a new one
}

func TestDryRunOfEventsThatNoHandlerRunsFor(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { panic("not for this one") })
	s.Notes.Ignore("viewed")
	for _, c := range []struct {
		event idem.Event
		want  idem.Outcome
	}{
		{identify([]byte(newBody)), idem.Unhandled},
		{identify([]byte("not JSON")), idem.Parked},
		{identify([]byte(`{"id":"e1","type":"viewed"}`)), idem.Ignored},
		{idem.Event{ID: "e1", Type: "paid", Payload: []byte(`{"order":7}`)}, idem.Parked},
	} {
		outcome, err := s.First.DryRun(t.Context(), c.event)
		if outcome != c.want || (err != nil) != (c.want == idem.Parked) {
			t.Errorf("DryRun of %s = %s, %v, want %s", c.event.Payload, outcome, err, c.want)
		}
	}
	s.WantContents([]string{})
}

// Whatever is stored of an event, its handler runs.
func TestDryRunOfAStoredEventRunsItAndLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	dry := 0
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if idem.IsDryRun(ctx) {
			dry++
		}
		return refuseBad(ctx, tx, n)
	})
	s.openInbox()
	s.WantAnswer(paid("done"), http.StatusOK)
	s.Store(letter("pending", "o1", 0))
	s.stock(1)
	want := s.Contents()
	for _, id := range []string{"done", "pending", "done-1", "parked-1", "unhandled-1", "discarded-1", "retrying-1"} {
		for _, dryRun := range []func(context.Context, idem.Event) (idem.Outcome, error){s.First.DryRun, s.Inbox.DryRun} {
			if outcome, err := dryRun(t.Context(), letter(id, "o1", 0)); outcome != idem.Done || err != nil {
				t.Errorf("DryRun of %s = %s, %v, want done", id, outcome, err)
			}
		}
	}
	if dry != 14 {
		t.Errorf("the handler ran %d times, want 14", dry)
	}
	s.WantContents(want)
}

func TestHandlerCanAskWhetherItIsADryRun(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	var asked []bool
	hooks := 0
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		asked = append(asked, idem.IsDryRun(ctx))
		idem.AfterCommit(ctx, func(context.Context) { hooks++ })
		return pay(ctx, tx, n)
	})
	s.openInbox()
	if outcome, err := s.First.DryRun(t.Context(), letter("e1", "o1", 0)); outcome != idem.Done {
		t.Fatal(outcome, err)
	}
	if hooks != 0 {
		t.Error("a function for after the commit ran in a dry run")
	}
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.Store(letter("e2", "o1", 0))
	s.Drain(1)
	err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		other := &notes{}
		idem.Handle(&other.Routes, "paid", func(ctx context.Context, _ pgx.Tx, _ *note) error {
			asked = append(asked, idem.IsDryRun(ctx))
			return nil
		})
		return idem.Dispatch(t.Context(), tx, other, letter("e3", "o1", 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, false, false, false}, asked); diff != "" {
		t.Error("IsDryRun (-want +got):\n" + diff)
	}
	if idem.IsDryRun(t.Context()) {
		t.Error("IsDryRun outside of a handler")
	}
	if hooks != 2 {
		t.Errorf("%d functions for after the commit ran, want 2", hooks)
	}
	s.WantEffects(2)
}

func TestDryRunOverHTTPIsNeverAnAcknowledgement(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(refuseBad)
	s.Notes.Ignore("viewed")
	s.openInbox()
	server := httptest.NewServer(s.Inbox)
	t.Cleanup(server.Close)
	mode := map[string]string{"works first": s.URL, "inbox": server.URL}
	for name, url := range mode {
		s.URL = url
		for body, want := range map[string]string{
			paid("e1"):                    `{"received":false,"dry_run":"done"}`,
			paid("bad1"):                  `{"received":false,"dry_run":"retrying"}`,
			newBody:                       `{"received":false,"dry_run":"unhandled"}`,
			`{"id":"e1","type":"viewed"}`: `{"received":false,"dry_run":"ignored"}`,
			`hello`:                       `{"received":false,"dry_run":"parked"}`,
			`{"type":"paid","id":"e1","x`: `{"received":false,"dry_run":"parked"}`,
			`{"id":"e1","type":"paid2"}`:  `{"received":false,"dry_run":"unhandled"}`,
		} {
			status, answer, err := s.Post(t.Context(), body, map[string]string{idem.DryRunHeader: "1"})
			if err != nil || status != http.StatusServiceUnavailable || answer != want {
				t.Errorf("%s: a dry run of %s is answered %d %s, %v, want 503 %s", name, body, status, answer, err, want)
			}
		}
		for _, token := range []string{"", "wrong"} {
			status, _, err := s.Post(t.Context(), paid("e1"), map[string]string{idem.DryRunHeader: "1", "token": token})
			if err != nil || status != http.StatusUnauthorized {
				t.Errorf("%s: a dry run with the token %q is answered %d, %v, want 401", name, token, status, err)
			}
		}
		s.WantContents([]string{})
	}
	if log := s.Logged(); !strings.Contains(log, "webhook dry run failed") || !strings.Contains(log, "no such order") {
		t.Error("the log does not tell why the dry run failed:\n" + log)
	}
	if seen := s.Outcomes(); len(seen) != 4 { // the refused ones of both modes
		t.Errorf("dry runs are counted as deliveries: %v", seen)
	}
}

func TestDryReplayCountsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(refuseBad)
	s.WantAnswer(newBody, http.StatusOK)
	s.WantAnswer(`{"id":"e2","type":"newer"}`, http.StatusOK)
	s.WantAnswer(`{"id":"e3","type":"viewed"}`, http.StatusOK)
	s.openInbox().Store(letter("bad1", "o2", 0), letter("bad2", "o3", 0))
	s.Drain(2)
	s.Store(letter("pending", "o1", 0))
	s.Exec(`update idem_payloads set body = '{"order":7}' where event like '%bad2'`) // it does not decode any more
	s.Deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", pay)
		idem.Handle(&n.Routes, "paid", refuseBad)
		n.Ignore("viewed")
	})
	want := s.Contents()
	for _, c := range []struct {
		filter idem.Filter
		want   idem.Replayed
	}{
		{idem.Filter{}, idem.Replayed{Done: 1, Failed: 2, Unhandled: 2}},
		{idem.Filter{Types: []string{"new"}}, idem.Replayed{Done: 1}},
		{idem.Filter{States: []idem.State{idem.StatePending}}, idem.Replayed{Done: 1}},
		{idem.Filter{IDs: []string{"nobody"}}, idem.Replayed{}},
	} {
		got, err := s.First.DryReplay(t.Context(), c.filter)
		if counted(got) != counted(c.want) || err != nil {
			t.Errorf("DryReplay of %+v = %+v, %v, want %+v", c.filter, got, err, c.want)
		}
	}
	s.WantContents(want)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.First.DryReplay(ctx, idem.Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("DryReplay = %v, want context canceled", err)
	}
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1, Failed: 2, Unhandled: 2}) // as was said
}

// A dry run of an event that the provider is about to deliver must not cost that delivery its answer.
func TestDeliveryDoesNotWaitForADryRunOfItsEvent(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]struct {
		keepPayloads bool
		dryRun       func(*app, idem.Event) (idem.Outcome, error)
	}{
		"of one that works first":    {false, func(s *app, e idem.Event) (idem.Outcome, error) { return s.First.DryRun(s.Context(), e) }},
		"of one that keeps payloads": {true, func(s *app, e idem.Event) (idem.Outcome, error) { return s.First.DryRun(s.Context(), e) }},
		"of an inbox":                {false, func(s *app, e idem.Event) (idem.Outcome, error) { return s.Inbox.DryRun(s.Context(), e) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t).openInbox()
			s.First.KeepPayloads = mode.keepPayloads
			entered, goOn := make(chan struct{}), make(chan struct{})
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if e, ok := idem.EventFrom(ctx); !ok || e.ID != "e1" {
					t.Errorf("the handler is given the event %q", e.ID)
				}
				if idem.IsDryRun(ctx) {
					close(entered)
					<-goOn
				}
				return pay(ctx, tx, n)
			})
			dry := make(chan error, 1)
			go func() {
				outcome, err := mode.dryRun(s, letter("e1", "o1", 0))
				if outcome != idem.Done {
					t.Errorf("DryRun = %s, want done", outcome)
				}
				dry <- err
			}()
			testkit.Next(t, entered)
			outcome, err := s.First.Accept(t.Context(), letter("e1", "o1", 0))
			if outcome != idem.Done || err != nil {
				t.Errorf("the delivery during the dry run is %s, %v, want done", outcome, err)
			}
			close(goOn)
			if err := <-dry; err != nil {
				t.Error(err)
			}
			s.WantEffects(1)
			s.WantState("e1", idem.StateDone)
		})
	}
}
