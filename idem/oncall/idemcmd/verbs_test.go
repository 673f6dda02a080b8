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
	"github.com/paghooks/paghooks/internal/command"
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
			if status != command.Failed || out != "" || !strings.HasSuffix(complaints, "idem: nothing was changed: the answer was not y\n") {
				t.Errorf("%q: exit status %d, %q, %q", answer, status, out, complaints)
			}
			s.wantText(`select count(*) from idem_audit`, "0")
			continue
		}
		if status != command.Done || out != "4 events of notes: requeued for the workers\n" {
			t.Errorf("%q: exit status %d, %q, %q", answer, status, out, complaints)
		}
		s.wantText(`select count(*) from idem_events where state = 'pending'`, "6")
		s.wantText(`select actor || ' ' || action || ' ' || cardinality(events) || ' ' || result from idem_audit`, "ana requeue 4 4 requeued")
	}
}

func TestASingleEventIsAskedAboutAsWell(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, verb := range []string{"requeue", "discard", "replay", "acknowledge"} {
		s.wantSays(command.Misused, "nothing was changed: nobody is at a terminal to confirm it: give -yes, or -dry-run to look only", verb, "bad_2", "-reason", "x")
		s.types = "n\n"
		s.wantSays(command.Failed, "this event? [y/N] idem: nothing was changed: the answer was not y", verb, "bad_2", "-reason", "x")
		s.types = ""
	}
	s.wantText(`select count(*) from idem_audit`, "0")
	s.types = "y\n"
	s.wantSays(command.Done, "Requeue this event? [y/N] ", "requeue", "bad_2")
	s.types = ""
	s.wantText(`select string_agg(action || ' ' || reason, '; ' order by id) from idem_audit`, "requeue ")
}

func TestWithYesNobodyIsAsked(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.want(command.Done, "1 event of notes: requeued for the workers\n", "", "requeue", "-yes", "bad_2")
	s.want(command.Done, "1 event of notes: discarded\n", "", "discard", "bad_6", "-yes", "-reason", "a test order")
	s.want(command.Done, "1 event of notes: replayed: 1 done, 0 failed, 0 without a handler\n", "", "replay", "-yes", "bad_5&77")
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
		if status, _, complaints := s.idem(args...); status != command.Done {
			t.Errorf("idem %q: exit status %d: %s", args, status, complaints)
		}
	}
	s.wantText(all, before)
	s.wantText(`select count(*) from effects where event like 'bad%'`, "0")
	s.wantText(`select string_agg(action, ' ') from idem_audit`, "dry replay") // handlers ran
}

func TestTwoReceiversOfOneSourceAreAMistake(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.receivers = append(s.receivers, s.receivers[0])
	s.wantSays(command.Failed, "two receivers of notes: give idemcmd.Main one of them", "stats")
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
		if status != command.Failed || !strings.Contains(out, "1 done, 2 failed, 1 without a handler\n") {
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

func TestReplayNamesWhatItRunsBehindALaterEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.receivers = []NewReceiver{receiver(pay)}
	s.exec(`insert into idem_events (event, type, key, state, occurred_at)
		select 'notes/store-2/refund', 'refunded', key, 'done', now() + interval '1 hour' from idem_events where event = 'notes/store-2/bad_6'`)
	for _, args := range [][]string{{"replay", "-dry-run", "bad_6"}, {"replay", "-yes", "bad_6"}} {
		_, _, complaints := s.idem(args...)
		for _, says := range []string{"1 event behind later ones of the same entity, which were done before", "  bad_6 (paid) behind refund (refunded)\n"} {
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
		i.Retention.Events, i.Retention.AllowProcessingTwice = 2*24*time.Hour, true
		return i
	}}
	s.want(command.Done, "0 events of notes: forgotten\n", "", "prune", "-as", "ana")
	const dayPasses = `update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`
	s.exec(dayPasses)
	s.wantSays(command.Misused, "The ages: notes older than 2 d; parked ones: never; the audit trail: 730 d.\nidem: nothing was changed: nobody is at a terminal to confirm it", "prune")
	s.types = "n\n"
	s.wantSays(command.Failed, "Prune this event? [y/N] idem: nothing was changed", "prune")
	s.types = ""
	s.want(command.Done, "1 event of notes: forgotten\n", "", "prune", "-as", "ana", "-yes")
	s.wantText(`select string_agg(concat_ws(', ', actor, action, filter, result), '; ' order by id) from idem_audit`,
		"ana, prune, older than 2 d; parked ones: never; the audit trail: 730 d, 0 forgotten; ana, prune, older than 2 d; parked ones: never; the audit trail: 730 d, 1 forgotten")
	s.exec(dayPasses)
	s.want(command.Done, "1 event of notes: forgotten\n", "", "prune", "-retention", "12h", "-allow-processing-twice", "-parked-retention", "4d", "-yes")
	s.wantText(`select string_agg(substring(event from '[^/]*$'), ' ' order by event) from idem_events`, "bad_5&77 evt_3 evt_4 evt_7 bad_6")
}

// The doctor sends people here who have deleted rows by hand.
func TestPruneOfNothingPutsRightWhatIsStuck(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`delete from idem_payloads where event like '%bad_2'`)
	if status, out, _ := s.idem("doctor"); status != command.Attention || !strings.Contains(out, "events wait for an earlier one that is not there") {
		t.Errorf("doctor: exit status %d, %s", status, out)
	}
	s.want(command.Done, "0 events of notes: forgotten\n", "", "prune")
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
	p.command.In = readerFunc(func(b []byte) (int, error) { cancel(); return typing.Read(b) })
	if status := p.run(ctx); status != command.Interrupted || !strings.HasSuffix(complaints.String(), "[y/N] \nidem: nothing was changed: context canceled\n") {
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
	if status != command.Failed || !strings.Contains(out, `"source":"notes","action":"replay","matched":4,"dry_run":false,"done":0,"failed":3`) ||
		!strings.Contains(out, `"source":"bills","action":"replay","matched":1,"dry_run":false,"done":1`) {
		t.Errorf("exit status %d, %s", status, out)
	}
}

func TestReplayOfWhatHasNoHandlerExits1(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.wantSays(command.Failed, "this program has no handler for 1 event", "replay", "-yes", "evt_7")
	s.wantSays(command.Done, "this program has no handler for 1 event", "replay", "evt_7", "bad_6", "-yes") // one is done
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

// What was shown is what is acted upon: the events of the list, and no others.
func TestActionLeavesWhatWasNotShown(t *testing.T) {
	t.Parallel()
	for verb, result := range map[string]string{"discard": "discarded", "requeue": "requeued", "replay": "done, 0 failed, 0 without a handler"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.accept("bad_1 paid pay_1", "bad_2 paid pay_2", "bad_3 paid pay_3", "bad_4 paid pay_4", "bad_5 paid pay_5", "bad_6 paid pay_6", "bad_7 paid pay_7")
			p, out, complaints := s.program(verb, "-type", "paid", "-reason", "a test")
			p.command.Asks, p.command.In = true, readerFunc(func(b []byte) (int, error) { // six of the seven became six others
				s.exec(`update idem_events set state = 'done' where event <> 'notes//bad_7'; delete from idem_payloads where event <> 'notes//bad_7' and source = 'notes'`)
				s.accept("bad_11 paid pay_11", "bad_12 paid pay_12", "bad_13 paid pay_13", "bad_14 paid pay_14", "bad_15 paid pay_15", "bad_16 paid pay_16")
				return copy(b, "y\n"), nil
			})
			status := p.run(t.Context())
			says := "idem: 6 of the 7 events of notes left alone: done, in another state by now, or being processed\n" +
				"idem: 6 events of notes came since, left alone: run it again to see them\n"
			if status != command.Done || !strings.HasSuffix(complaints.String(), says) || !strings.HasPrefix(out.String(), "1 event of notes: ") {
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
	s.wantSays(command.Failed, "no workers of this source are alive", "requeue", "-yes", "bad_1")
	s.wantText(`select state from idem_events`, "parked")
	s.want(command.Done, "1 event of notes: requeued for the workers\n", "", "requeue", "-yes", "-without-workers", "bad_1")
	s.wantText(`select state from idem_events`, "pending")
}

// A mistake in one of several ids must not pass for done.
func TestAnIDThatMatchesNoEventAmongOthersIsSaidAndExits1(t *testing.T) {
	t.Parallel()
	for verb, c := range map[string]struct{ id, did, state string }{
		"requeue": {"bad_2", "requeued for the workers", "pending"},
		"discard": {"bad_2", "discarded", "discarded"},
		"erase":   {"evt_1", "erased", "done"},
	} {
		s := newShop(t)
		s.badNight()
		s.want(command.Failed, "1 event of notes: "+c.did+"\n",
			"idem: no event matched: see whether the id is complete: one with an & in it needs quotes. If it is a payment's, not an event's: -entity bad_5\n",
			verb, "-reason", "x", "-yes", c.id, "bad_5")
		s.wantText(`select state from idem_events where event = 'notes//`+c.id+`'`, c.state)
	}
	s := newShop(t)
	s.badNight()
	s.types = "n\n"
	s.wantSays(command.Failed, "idem: no event matched: evt_1 is done, evt_3 is pending, nope is not stored; those that are pending need -state\n1 event of notes.\n", "requeue", "bad_2", "evt_3", "evt_1", "nope")
	s.wantSays(command.Failed, "idem: no event matched: nope\n", "show", "bad_2", "nope")
}

// An event of another account with the same id is another event.
func TestVerbsTakeTheEventsAsTheTrailPrintsThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason  string
		words   []string
		pending string
		says    string
	}{
		{"of one account", []string{"notes/store-2/bad_6"}, "notes/store-2/bad_6", "1 event of notes: requeued"},
		{"of no account, beside an id", []string{"notes//bad_2", "bad_5&77"}, "notes//bad_2 notes//bad_5&77", "2 events of notes: requeued"},
		{"one that is not stored, beside one that is", []string{"notes/store-3/bad_6", "notes//bad_2"}, "notes//bad_2", "-entity notes/store-3/bad_6"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.badNight()
			s.exec(`insert into idem_events (event, type, key, state) values ('notes//bad_6', 'paid', 'pay_8', 'parked');
				insert into idem_payloads (event, source, lane, received_at, body) values ('notes//bad_6', 'notes', 'notes//pay_8', now(), '')`)
			if _, listed, _ := s.idem(append([]string{"list", "-json"}, c.words...)...); strings.Count(listed, "\n") != len(strings.Fields(c.pending)) {
				t.Errorf("list prints %s; want %s", listed, c.pending)
			}
			_, out, errs := s.idem(append([]string{"requeue", "-yes"}, c.words...)...)
			if !strings.Contains(out+errs, c.says) {
				t.Errorf("it says %q, %q; want %q", out, errs, c.says)
			}
			s.wantText(`select coalesce(string_agg(event, ' ' order by event), '') from idem_events where state = 'pending' and event like '%/bad\_%'`, c.pending)
		})
	}
}

func TestAcknowledgeSaysWhyItLeavesEventsAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`update idem_events set state = 'pending', attempts = 0 where event = 'notes//bad_5&77'; update idem_payloads set failures = null where event = 'notes//bad_5&77'`)
	s.want(command.Done, "1 event of notes: acknowledged, not processed\n",
		"idem: 1 of the 2 events of notes left alone: waiting for their turn and never tried, being processed, or done by now\n",
		"acknowledge", "bad_2", "bad_5&77", "-reason", "ticket 7", "-as", "ana", "-yes")
}

func TestAcknowledgingIsSeenAndTakenBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.want(command.Done, "1 event of notes: acknowledged, not processed\n", "", "acknowledge", "bad_2", "-reason", "ticket 7", "-as", "ana", "-yes")
	for words, says := range map[string]string{
		"list bad_2":       "parked, acknowledged",
		"list -json bad_2": `"acknowledged_at":"2`,
		"show bad_2":       "ana takes care of it: ticket 7.",
		"show -json bad_2": `"acknowledged":{"actor":"ana","reason":"ticket 7"}`,
		"stats":            "acknowledged are 1 more",
		"stats -json":      `"acknowledged":1,`,
	} {
		if _, out, errs := s.idem(strings.Fields(words)...); !strings.Contains(out, says) {
			t.Errorf("idem %s says %q, %q; want %q", words, out, errs, says)
		}
	}
	s.want(command.Done, "1 event of notes: acknowledged no more\n", "", "acknowledge", "-undo", "-failed", "-reason", "it is mine now", "-as", "bruno", "-yes")
	if _, out, _ := s.idem("list", "bad_2"); strings.Contains(out, "acknowledged") {
		t.Errorf("after -undo idem list says %q", out)
	}
	if status, _, _ := s.idem("acknowledge", "-undo", "bad_2", "-reason", "again", "-yes"); status != command.Nothing {
		t.Errorf("-undo of what nobody has acknowledged: exit status %d", status)
	}
}

func TestAnAcknowledgedEventStaysParked(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.want(command.Done, "1 event of notes: acknowledged, not processed\n", "", "acknowledge", "bad_2", "-reason", "ticket 7", "-as", "ana", "-yes")
	s.wantText(`select state from idem_events where event like '%/bad_2'`, "parked")
	s.wantText(`select actor || ' ' || action || ' ' || reason || ' ' || events::text || ' ' || result from idem_audit`, "ana acknowledge ticket 7 {notes//bad_2} 1 acknowledged")
	for _, args := range [][]string{{"acknowledge", "bad_2"}, {"acknowledge", "-reason", "x", "-yes"}, {"acknowledge", "-reason", "x", "-yes", "-state", "unhandled"}, {"acknowledge", "-reason", "x", "-yes", "-state", "parked"}} {
		if status, _, complaints := s.idem(args...); status != command.Misused {
			t.Errorf("idem %q: exit status %d: %s", args, status, complaints)
		}
	}
	if status, _, _ := s.idem("acknowledge", "no_such_event", "-reason", "x"); status != command.Nothing {
		t.Errorf("an event that is not there: exit status %d", status)
	}
}
