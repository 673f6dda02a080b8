package idemcmd

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

func TestAPersonIsAskedBeforeSeveralEventsAreTouched(t *testing.T) {
	t.Parallel()
	for answer, does := range map[string]bool{"y\n": true, " YES \n": true, "y": true, "\n": false, "n\n": false, "yess\n": false} {
		s := newShop(t)
		s.badNight()
		s.types = answer
		status, out, complaints := s.idem("requeue", "-as", "ana")
		if !strings.Contains(complaints, "4 events of notes.\n") || !strings.Contains(complaints, "Requeue these 4 events? [y/N] ") {
			t.Errorf("%q: it does not show and ask:\n%s", answer, complaints)
		}
		if !does {
			if status != exitFailed || out != "" || !strings.HasSuffix(complaints, "idem: nothing was changed: the answer was not y\n") {
				t.Errorf("%q: exit status %d, %q, %q", answer, status, out, complaints)
			}
			s.wantText(`select count(*) from idem_audit`, "0")
			continue
		}
		if status != exitDone || out != "4 events of notes: requeued for the workers; idem watch shows them go\n" {
			t.Errorf("%q: exit status %d, %q, %q", answer, status, out, complaints)
		}
		s.wantText(`select count(*) from idem_events where state = 'pending'`, "6")
		s.wantText(`select actor || ' ' || action || ' ' || cardinality(events) || ' ' || result from idem_audit`, "ana requeue 4 4 requeued")
	}
}

func TestOneEventNeedsNoQuestion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.want(exitDone, "1 event of notes: requeued for the workers; idem watch shows them go\n", "", "requeue", "bad_2")
	s.want(exitDone, "1 event of notes: discarded\n", "", "discard", "bad_6", "-reason", "a test order")
	s.want(exitDone, "1 event of notes: replayed: 1 done, 0 failed, 0 without a handler\n", "", "replay", "bad_5&77")
	s.wantText(`select string_agg(action || ' ' || reason, '; ' order by id) from idem_audit`, "requeue ; discard a test order; replay ")
}

func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	const all = `select string_agg(event || state || attempts || received_at, ' ' order by event) from idem_events`
	before := s.text(all)
	for _, args := range [][]string{
		{"requeue", "-dry-run"},
		{"replay", "-dry-run"},
		{"discard", "-dry-run", "-reason", "x", "-state", "parked"},
		{"prune", "-dry-run", "-retention", "1h", "-allow-processing-twice"},
		{"requeue", "-dry-run", "bad_2"},
		{"migrate", "-dry-run"},
	} {
		if status, _, complaints := s.idem(args...); status != exitDone {
			t.Errorf("idem %q: exit status %d: %s", args, status, complaints)
		}
	}
	s.wantText(all, before)
	s.wantText(`select count(*) from effects where event like 'bad%'`, "0")
	s.wantText(`select string_agg(action, ' ') from idem_audit`, "dry replay") // handlers ran
}

func TestAReceiverWithoutWorkersSaysToReplay(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.receivers = []NewReceiver{func(pool *pgxpool.Pool) idem.Receiver { return idem.NewProcessor(pool, new(notes)) }}
	s.wantSays(exitFailed, "a Processor has no workers: replay them", "requeue", "bad_2")
	s.receivers = append(s.receivers, s.receivers[0])
	s.wantSays(exitFailed, "two receivers of notes: give idemcmd.Main one of them", "stats")
}

func TestReplayOfWhatFailsAgainSaysWhyAndExits1(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.receivers = []NewReceiver{receiver(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "bad_6" {
			return pay(ctx, tx, n)
		}
		return errors.New("still no such order")
	})}
	for _, args := range [][]string{{"replay", "-dry-run"}, {"replay", "-yes"}} {
		status, out, complaints := s.idem(args...)
		if status != exitFailed || !strings.Contains(out, "1 done, 2 failed, 1 without a handler\n") {
			t.Errorf("idem %q: exit status %d, %s", args, status, out)
		}
		for _, says := range []string{
			"  paid bad_2: still no such order\n", "  paid bad_5&77: still no such order\n",
			"this program has no handler for 1 event, which stay as they are\n", "2 events failed, and stay: idem list shows why\n",
		} {
			if !strings.Contains(complaints, says) {
				t.Errorf("idem %q does not say %q:\n%s", args, says, complaints)
			}
		}
	}
}

func TestPruneForgetsByTheApplicationsSettingsOrTheFlags(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.receivers = []NewReceiver{func(pool *pgxpool.Pool) idem.Receiver {
		i := receiver(pay)(pool).(*idem.Inbox)
		i.Retention, i.AllowProcessingTwice = 2*24*time.Hour, true
		return i
	}}
	s.want(exitDone, "0 events of notes: forgotten\n", "", "prune", "-as", "ana")
	const dayPasses = `update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`
	s.exec(dayPasses)
	s.wantSays(exitUsage, "The ages: notes older than 2d 0h; parked ones: never.\nidem: nothing was changed: nobody is at a terminal to confirm it", "prune")
	s.types = "n\n"
	s.wantSays(exitFailed, "Prune these 1 event? [y/N] idem: nothing was changed", "prune")
	s.types = ""
	s.want(exitDone, "1 event of notes: forgotten\n", "", "prune", "-as", "ana", "-yes")
	s.wantText(`select string_agg(concat_ws(', ', actor, action, filter, result), '; ' order by id) from idem_audit`,
		"ana, prune, older than 2d 0h; parked ones: never, 0 forgotten; ana, prune, older than 2d 0h; parked ones: never, 1 forgotten")
	s.exec(dayPasses)
	s.want(exitDone, "1 event of notes: forgotten\n", "", "prune", "-retention", "12h", "-allow-processing-twice", "-parked-retention", "4d", "-yes")
	s.wantText(`select string_agg(substring(event from '[^/]*$'), ' ' order by event) from idem_events`, "bad_5&77 evt_3 evt_4 evt_7 bad_6")
}

// The doctor sends people here who have deleted rows by hand.
func TestPruneOfNothingPutsRightWhatIsStuck(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`delete from idem_payloads where event like '%bad_2'`)
	if status, out, _ := s.idem("doctor"); status != exitFailed || !strings.Contains(out, "events wait for an earlier one that is not there") {
		t.Errorf("doctor: exit status %d, %s", status, out)
	}
	s.want(exitDone, "0 events of notes: forgotten\n", "", "prune")
	if _, out, _ := s.idem("doctor"); strings.Contains(out, "stuck: ") {
		t.Errorf("doctor: %s", out)
	}
}

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
	p.Stdin = readerFunc(func(b []byte) (int, error) { cancel(); return typing.Read(b) })
	if status := p.run(ctx); status != exitFailed || !strings.HasSuffix(complaints.String(), "[y/N] \nidem: nothing was changed: context canceled\n") {
		t.Errorf("exit status %d, %q", status, complaints)
	}
	s.wantText(`select count(*) from idem_audit`, "0")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Two sources: what fails for one does not keep the other waiting.
func TestReplayGoesOnWithTheNextSource(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`insert into idem_events (event, type, key, state) values ('bills//e1', 'paid', '', 'parked')`)
	s.exec(`insert into idem_payloads (event, source, received_at, body) values ('bills//e1', 'bills', now(), '{"id":"e1","type":"paid"}')`)
	s.receivers = []NewReceiver{receiver(refuseBad), func(pool *pgxpool.Pool) idem.Receiver {
		source := &stored{name: "bills"}
		idem.Handle(&source.Routes, "paid", pay)
		return idem.NewInbox(pool, source)
	}}
	status, out, _ := s.idem("replay", "-yes", "-json")
	if status != exitFailed || !strings.Contains(out, `"source":"notes","action":"replay","matched":4,"dry_run":false,"done":0,"failed":3`) ||
		!strings.Contains(out, `"source":"bills","action":"replay","matched":1,"dry_run":false,"done":1`) {
		t.Errorf("exit status %d, %s", status, out)
	}
}

func TestReplayOfWhatHasNoHandlerExits1(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.wantSays(exitFailed, "this program has no handler for 1 event", "replay", "evt_7")
	s.wantSays(exitDone, "this program has no handler for 1 event", "replay", "evt_7", "bad_6", "-yes") // one is done
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
		if status := p.run(t.Context()); status != exitDone {
			t.Fatalf("exit status %d, %s", status, complaints)
		}
		drawn := complaints.String()
		if !terminal {
			if drawn != "" {
				t.Errorf("it draws %q", drawn)
			}
			continue
		}
		lines := strings.Split(strings.TrimSuffix(drawn, "\n"), "\r")[1:]
		if len(lines) != 101 || lines[50] != "trying notes: 501 of 1,000 (50 %), 100/s, 4s left" || lines[100] != "trying notes: 1,000 of 1,000 (100 %), 100/s, 0s left" {
			t.Errorf("%d lines, %q, %q", len(lines), lines[50:51], lines[len(lines)-1])
		}
	}
}

func TestMigrateByARoleThatMayAndThePrintForOneThatMayNot(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.exec(`drop table idem_migrations`)
	s.want(exitDone, "missing: migrations/00001_idem.sql\nmissing: migrations/00002_operate.sql\n", "", "migrate", "-dry-run")
	s.want(exitDone, `{"migration":"migrations/00001_idem.sql","dry_run":false}`+"\n"+`{"migration":"migrations/00002_operate.sql","dry_run":false}`+"\n", "", "migrate", "-json")
	s.want(exitDone, "All migrations are applied.\n", "", "migrate")
	p, out, _ := s.program()
	p.Args = []string{"migrate", "-print", "-database", "postgres://127.0.0.1:1/nobody"} // it needs none
	if status := p.run(t.Context()); status != exitDone {
		t.Errorf("exit status %d", status)
	}
	s.exec(out.String())
}

// What was shown is what is acted upon: the events of the list, and no others.
func TestActionLeavesWhatWasNotShown(t *testing.T) {
	t.Parallel()
	for verb, result := range map[string]string{"discard": "discarded", "requeue": "requeued", "replay": "done, 0 failed, 0 without a handler"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.accept("bad_1 paid pay_1", "bad_2 paid pay_2", "bad_3 paid pay_3", "bad_4 paid pay_4", "bad_5 paid pay_5", "bad_6 paid pay_6", "bad_7 paid pay_7")
			p, out, complaints := s.program(verb, "-type", "paid", "-reason", "a test")
			p.asks, p.Stdin = true, readerFunc(func(b []byte) (int, error) { // six of the seven became six others
				s.exec(`update idem_events set state = 'done' where event <> 'notes//bad_7'; delete from idem_payloads where event <> 'notes//bad_7' and source = 'notes'`)
				s.accept("bad_11 paid pay_11", "bad_12 paid pay_12", "bad_13 paid pay_13", "bad_14 paid pay_14", "bad_15 paid pay_15", "bad_16 paid pay_16")
				return copy(b, "y\n"), nil
			})
			status := p.run(t.Context())
			says := "idem: 6 of the 7 events of notes left alone: done, in another state by now, or being processed\n" +
				"idem: 6 events of notes came since, left alone: run it again to see them\n"
			if status != exitDone || !strings.HasSuffix(complaints.String(), says) || !strings.HasPrefix(out.String(), "1 event of notes: ") {
				t.Errorf("exit status %d, %q, %q, want it to say %q", status, out, complaints, says)
			}
			s.wantText(`select count(*) from idem_events where state = 'parked' and event like 'notes//bad\_1_'`, "6")
			s.wantText(`select count(*) from idem_events where state = 'done' and event <> 'notes//bad_7'`, "6")
			s.wantText(`select events::text || ': ' || result from idem_audit`,
				"{notes//bad_7}: 1 "+result+"; 6 left alone: done, in another state by now, or being processed")
		})
	}
}

func TestRequeueIsRefusedWhereNoWorkersAreAliveUnlessItIsForced(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.workers = false
	s.accept("bad_1 paid pay_1")
	s.wantSays(exitFailed, "no workers of this source are alive", "requeue", "bad_1")
	s.wantText(`select state from idem_events`, "parked")
	s.want(exitDone, "1 event of notes: requeued for the workers; idem watch shows them go\n", "", "requeue", "-without-workers", "bad_1")
	s.wantText(`select state from idem_events`, "pending")
}
