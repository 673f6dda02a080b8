package idemcmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Ctrl-C at the question is an answer, too.
func TestASignalAtTheQuestionChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	ctx, cancel := context.WithCancel(t.Context())
	s.types = "nothing, ever"
	p, _, complaints := s.program("requeue")
	typing, end := io.Pipe()
	t.Cleanup(func() { _ = end.Close() })
	p.command.In = readerFunc(func(b []byte) (int, error) { cancel(); return typing.Read(b) })
	if status := p.run(ctx); status != command.Interrupted || !strings.HasSuffix(complaints.String(), "[y/N] \nidem: nothing was changed: context canceled\n") {
		t.Errorf("exit status %d, %q", status, complaints)
	}
	s.wantText(`select count(*) from idem_audit`, "0")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestTwoReceiversOfOneSourceAreAMistake(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.receivers = append(s.receivers, s.receivers[0])
	s.wantSays(command.Failed, "two receivers of notes: give idemcmd.Main one of them", "stats")
}

// Redrawing is bounded, and the last line is the whole.
func TestProgressTellsRateAndTimeLeftOnATerminalOnly(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'parked', now() + n * interval '1 second' from generate_series(1, 1000) n`)
	s.exec(`insert into idem_payloads (event, source, received_at, body)
		select event, 'notes', received_at, '{"id":"x","type":"paid"}' from idem_events`)
	for _, terminal := range []bool{false, true} {
		p, _, complaints := s.program("replay", "-dry-run", "-json")
		clock := time.Unix(0, 0)
		p.now = func() time.Time { clock = clock.Add(10 * time.Millisecond); return clock }
		p.progresses = terminal
		if status := p.run(t.Context()); status != command.Done {
			t.Fatalf("exit status %d, %s", status, complaints)
		}
		drawn := complaints.String()
		if !terminal {
			if databaseLine.ReplaceAllString(drawn, "") != "" {
				t.Errorf("it draws %q", drawn)
			}
			continue
		}
		lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\r")[1:]
		if len(lines) != 101 || lines[50] != "trying notes: 501 of 1,000 (50 %), 100/s, 4 s left" || lines[100] != "trying notes: 1,000 of 1,000 (100 %), 100/s, less than 1 s left" {
			t.Errorf("%d lines, %q, %q", len(lines), lines[50:51], lines[len(lines)-1])
		}
	}
}

func TestMigrateByARoleThatMayAndThePrintForOneThatMayNot(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.exec(`drop table idem_migrations`)
	s.want(command.Done, "missing: migrations/00001_idem.sql\n", "", "migrate", "-dry-run")
	s.want(command.Done, `{"migration":"migrations/00001_idem.sql","dry_run":false}`+"\n", "", "migrate", "-json")
	s.want(command.Done, "All migrations are applied.\n", "", "migrate")
	p, out, _ := s.program()
	p.Args = []string{"migrate", "-print", "-database", "postgres://127.0.0.1:1/nobody"} // it needs none
	if status := p.run(t.Context()); status != command.Done {
		t.Errorf("exit status %d", status)
	}
	s.exec(out.String())
}

// taken notes what is published.
type taken []broker.Message

func (b *taken) Publish(_ context.Context, m broker.Message) error {
	*b = append(*b, m)
	return nil
}

// openNotes is a source that takes every delivery.
type openNotes struct{ idem.Routes }

func (*openNotes) Name() string { return "notes" }
func (*openNotes) Open(*http.Request) (idem.Event, error) {
	return idem.Event{Source: "notes", ID: "relayed_1", Type: "paid", Payload: []byte(`{"id":"relayed_1","type":"paid"}`)}, nil
}

func TestReadmitAcceptsWhatTheRightSecretVerifies(t *testing.T) { // not parallel: it sets the environment
	const right, wrong = "the-secret-of-the-relay-in-front-of-it", "another-secret-of-thirty-two-characters"
	s := newShop(t)
	var published taken
	r := relay.New(&openNotes{}, &published, right)
	r.Logger = nil
	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("{}")))
	inbox := idem.NewInbox(s.pool, testkit.NewSource("notes"))
	inbox.Logger = nil
	for _, m := range published {
		if err := relay.To(inbox, wrong)(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	id := strings.TrimPrefix(s.text(`select event from idem_events`), "notes//")
	for _, c := range []struct {
		secrets string
		step
	}{
		{"", step{reason: "it needs a secret", args: "readmit", status: command.Misused, says: "idem: IDEM_RELAY_SECRETS is not set: …"}},
		{right, step{reason: "and workers", args: "readmit -yes", status: command.Failed, says: "idem: …no workers of this source are alive…"}},
		{right, step{reason: "a look at it needs nobody", args: "readmit -dry-run", out: "1 event of notes.\n…would be verified again…"}},
		{right, step{reason: "without a person it changes nothing", args: "readmit", status: command.Misused, says: "1 event of notes.\n…" + nobody}},
		{"short", step{reason: "a short secret is a mistake", args: "readmit -yes -without-workers", status: command.Failed, says: "idem: a secret of Readmit has 5 characters…", effect: "ana readmit: …failed: …"}},
		{wrong, step{
			reason: "what is not genuine stays", args: "readmit -yes -without-workers", status: command.Failed, out: "0 events of notes: accepted\n",
			says: "idem: 1 of the 1 event of notes left alone: set aside still: …", effect: "ana readmit: 0 accepted, 1 left",
		}},
		{wrong + " " + right, step{
			reason: "one of several is the right one", types: "y\n", args: "readmit -without-workers", out: "1 event of notes: accepted\n", says: "…Readmit this event? [y/N] ",
			effect: "relayed_1 pending, " + id + " discarded; ana readmit: 1 accepted, 0 left",
		}},
		{right, step{reason: "once", args: "readmit", status: command.Nothing, says: "idem: no event matched…"}},
	} {
		t.Setenv("IDEM_RELAY_SECRETS", c.secrets)
		s.step(c.step)
	}
}

// action records one of bob's that has not ended. seen is its last sign of life, in SQL; it has done
// the first of its events.
func (s *shop) action(verb, seen string, events ...string) {
	s.Helper()
	const begin = `
with begun as (
	insert into idem_audit (id, actor, action, source, filter, reason, events, seen_at) values (1, 'bob', $1, 'notes', 'all', 'fixed', $2, `
	if _, err := s.pool.Exec(s.Context(), begin+seen+`) returning id
)
insert into idem_audit_events (action, event, result) select id, $3, 'done' from begun`, verb, events, events[0]); err != nil {
		s.Fatal(err)
	}
}

// How it came to its end, and how to go on.
func TestAReplayThatIsStoppedFromElsewhereSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	began, stopped := make(chan struct{}, 3), make(chan struct{})
	s.receivers = []NewReceiver{receiver(func(ctx context.Context, tx pgx.Tx, n *note) error {
		began <- struct{}{}
		<-stopped
		return pay(ctx, tx, n)
	})}
	status, complaints := make(chan int), ""
	go func() {
		code, _, said := s.idem("replay", "-yes", "-as", "bob", "-type", "paid")
		complaints = said
		status <- code
	}()
	<-began
	s.want(command.Done, "action 1, the replay of bob, is asked to end: idem audit shows when it has\n", "", "stop", "-as", "ana", "1")
	close(stopped)
	if code := <-status; code != command.Failed || !strings.Contains(complaints, "1 of 3 events were replayed") || !strings.Contains(complaints, "stopped by ana") {
		t.Errorf("the replay that was stopped: exit status %d, %s", code, complaints)
	}
	s.step(step{
		reason: "the same command shows the rest, and asks anew", types: "y\n", args: "replay -type paid", out: "2 events of notes: replayed: 2 done, …",
		says: "2 events of notes.\n…Replay these 2 events? [y/N] ", effect: "bad_5&77 done 1, notes/store-2/bad_6 done 1; ana replay: 2 done, …",
	})
}

// What changes all of its events or none has changed none, and a person looks at the rest anew.
func TestAnActionThatIsBrokenOffSaysHowFarItCameAndHowToGoOn(t *testing.T) {
	t.Parallel()
	replay, discard := &operator.Plan{Action: "replay", Count: 3}, &operator.Plan{Action: "discard", Count: 3, Atomic: true}
	one := operator.Result{Acted: 1, Replayed: idem.Replayed{Done: 1}}
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received"))
	const replayed = "idem: 1 of 3 events were replayed (1 done, 0 failed, 0 without a handler), the rest is as it was: run it again to go on\n"
	for _, c := range []struct {
		reason   string
		ctx      context.Context
		plan     *operator.Plan
		result   operator.Result
		err      error
		says, is string
	}{
		{"somebody has stopped a replay", t.Context(), replay, one, operator.ErrStopped, replayed, "the action was stopped"},
		{"Ctrl-C", canceled, replay, one, context.Canceled, replayed, "stopped: interrupt signal received"},
		{"the database is away", t.Context(), replay, one, errors.New("away"), replayed, "away"},
		{"somebody has stopped a discard", t.Context(), discard, operator.Result{}, operator.ErrStopped, "", "the action was stopped" + changedNothing},
		{"Ctrl-C, of a discard", canceled, discard, operator.Result{}, context.Canceled, "", "context canceled" + changedNothing},
		{"a discard failed", t.Context(), discard, operator.Result{}, errors.New("away"), "", "away"},
	} {
		p, _, complaints := (&shop{T: t}).program()
		if err := p.brokenOff(c.ctx, c.plan, c.result, c.err); err.Error() != c.is || complaints.String() != c.says {
			t.Errorf("%s: %q, %v, want %q, %q", c.reason, complaints, err, c.says, c.is)
		}
	}
}

const changedNothing = ": nothing was changed, unless idem audit has its result. Give the command again: it shows the events that are left, and asks anew"
