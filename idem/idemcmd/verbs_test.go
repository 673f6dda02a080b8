package idemcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

func TestWrongUsageExits2AndSaysWhatIsRight(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, c := range []struct {
		why  string
		args []string
		says string
	}{
		{"no verb", nil, "give a verb: stats shows how things are"},
		{"unknown verb", []string{"lsit"}, `there is no verb "lsit": idem help prints them`},
		{"help on one", []string{"help"}, "there is no verb"}, // -database follows it
		{"flag before the verb", []string{"-json"}, "the verb comes first, then -json"},
		{"unknown flag", []string{"stats", "-reason", "x"}, "flag provided but not defined: -reason: idem help stats prints the flags"},
		{"too many words", []string{"stats", "asaas"}, `"asaas" is too much: idem help stats prints what it takes`},
		{"show without an id", []string{"show"}, "show what? give an ID"},
		{"no state", []string{"list", "-state", "failed"}, `"failed" is none of pending, retrying, unhandled and parked`},
		{"no time", []string{"list", "-from", "yesterday"}, "nor how long ago, such as 2h or 3d"},
		{"negative limit", []string{"list", "-limit", "-1"}, "-limit is -1: give 0 for all"},
		{"watch that never rests", []string{"watch", "-every", "1ms"}, "that would load the database; give 1s or more"},
		{"discard without a reason", []string{"discard", "bad_2"}, "give a -reason"},
		{"discard of everything", []string{"discard", "-reason", "x"}, "say which events to discard"},
		{"nobody to ask", []string{"requeue"}, "nothing was changed: nobody is at a terminal to confirm it: give -yes"},
		{"no age", []string{"prune", "-retention", "0"}, "it is no time such as 45d or 12h"},
		{"no number", []string{"audit", "x"}, "give the number of one action"},
	} {
		s.wantSays(exitUsage, c.says, c.args...)
	}
	s.wantText(`select count(*) from idem_events where state in ('parked', 'unhandled')`, "4")
}

func TestWhatMatchesNothingExits3AndSaysWhatWasMeant(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, c := range []struct {
		why  string
		args []string
		says string
	}{
		{"no event of that type", []string{"list", "-type", "nothing"}, "idem: no event matched\n"},
		{"an id that is not there", []string{"list", "bad_5"}, "see whether the id is complete: one with an & in it needs quotes"},
		{"an event in another state", []string{"requeue", "evt_3"}, "evt_3 is pending; those that are pending or retrying need -state"},
		{"a done one", []string{"replay", "evt_1"}, "evt_1 is done"},
		{"show of nothing", []string{"show", "nothing"}, "a done event of an account needs -account"},
		{"no such source", []string{"stats", "-source", "asaas"}, `there is no source "asaas", but notes`},
		{"an account without it", []string{"show", "bad_6", "-account", "store-3"}, "no event matched"},
		{"no such action", []string{"audit", "77"}, "there is no action 77"},
	} {
		s.wantSays(exitNothing, c.says, c.args...)
	}
	quiet := newShop(t)
	quiet.wantSays(exitNothing, "no entity is blocked", "blocked")
	quiet.prebuilt()
	quiet.want(exitDone, "No event is stored.\n", "", "stats")
}

func TestEveryConditionOfAFilterIsAFlag(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, c := range []struct {
		args []string
		want string // ids, the newest first
	}{
		{nil, "evt_7 bad_6 bad_5&77 bad_2"},
		{[]string{"-state", "pending"}, "evt_4 evt_3"},
		{[]string{"-state", "pending,unhandled", "-state", "parked"}, "evt_7 bad_6 bad_5&77 evt_4 evt_3 bad_2"},
		{[]string{"-account", "store-2"}, "bad_6"},
		{[]string{"-account", "store-2", "-account", ""}, "evt_7 bad_6 bad_5&77 bad_2"},
		{[]string{"-type", "refunded"}, "evt_7"},
		{[]string{"-type", "refunded,paid"}, "evt_7 bad_6 bad_5&77 bad_2"},
		{[]string{"-entity", "pay_2"}, "bad_2"},
		{[]string{"-id", "bad_2", "-id", "bad_6"}, "bad_6 bad_2"},
		{[]string{"bad_2", "-json", "bad_5&77"}, "bad_5&77 bad_2"},
		{[]string{"-from", "3d"}, "evt_7 bad_6"},
		{[]string{"-until", "3d"}, "bad_5&77 bad_2"},
		{[]string{"-from", time.Now().AddDate(0, 0, -4).Format(time.RFC3339), "-until", time.Now().AddDate(0, 0, -2).Format("2006-01-02T15:04:05")}, "bad_6 bad_5&77"},
		{[]string{"-limit", "2"}, "evt_7 bad_6"},
	} {
		status, out, complaints := s.idem(append([]string{"list", "-json"}, c.args...)...)
		var ids []string
		for line := range strings.Lines(out) {
			var e event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID)
		}
		if got := strings.Join(ids, " "); got != c.want || status != exitDone {
			t.Errorf("list %q: exit status %d, %q, want %q\n%s", c.args, status, got, c.want, complaints)
		}
	}
	s.wantSays(exitDone, "these are 2 of 4 events: -limit 0 prints all", "list", "-limit", "2")
}

func TestListReadsPageByPage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const n = 2*perPage + 1
	s.exec(fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'parked', now() - n * interval '1 second' from generate_series(1, %d) n`, n))
	s.exec(`insert into idem_payloads (event, source, received_at, body) select event, 'notes', received_at, '{}' from idem_events`)
	for limit, want := range map[string]int{"0": n, "150": 150, "50": 50} {
		_, out, _ := s.idem("list", "-json", "-limit", limit)
		if got := strings.Count(out, "\n"); got != want {
			t.Errorf("-limit %s prints %d events, want %d", limit, got, want)
		}
	}
}

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
		{"prune", "-dry-run", "-retention", "1h"},
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

// The body is shown once it is recorded who looked; not before.
func TestABodyIsShownOnceItIsRecordedWhoLooks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	if _, out, _ := s.idem("show", "bad_6", "-json"); strings.Contains(out, `\"order\"`) {
		t.Error("the body is shown without -payload: " + out)
	}
	s.wantText(`select count(*) from idem_audit`, "0")
	if _, out, _ := s.idem("show", "bad_6", "-payload", "-as", "ana", "-reason", "ticket 7"); !strings.Contains(out, `{"id":"bad_6","type":"paid","order":"pay_6"}`) {
		t.Error("the body is not shown: " + out)
	}
	s.wantText(`select concat_ws(', ', actor, action, filter, reason, result) from idem_audit`, "ana, reveal, notes/store-2/bad_6, ticket 7, shown")
	s.exec(`drop table idem_audit`)
	status, out, _ := s.idem("show", "bad_6", "-payload")
	if status != exitFailed || strings.Contains(out, "pay_6") {
		t.Errorf("without the audit trail: exit status %d, %s", status, out)
	}
}

func TestABodyThatIsNotTextIsInBase64(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`update idem_payloads set body = '\xff00'`)
	if _, out, _ := s.idem("show", "bad_2", "-payload", "-json"); !strings.Contains(out, `"payload_base64":"/wA="`) || strings.Contains(out, `"payload":`) {
		t.Error(out)
	}
}

func TestAuditTellsWhoDidWhatToWhichEvents(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.want(exitDone, "Nobody has done anything by hand.\n", "", "audit")
	s.badNight()
	s.idem("requeue", "bad_2", "-as", "ana", "-reason", "order 2 is there now")
	s.idem("replay", "bad_6", "bad_5&77", "-yes", "-as", "bia")
	s.exec(`update idem_audit set result = null, ended_at = null where id = 1`)
	_, out, _ := s.idem("audit")
	s.golden("audit.txt", out)
	_, out, _ = s.idem("audit", "-json", "-limit", "1")
	s.golden("audit.json", out)
	s.want(exitDone, "notes//bad_5&77\nnotes/store-2/bad_6\n", "", "audit", "2")
	s.want(exitDone, `{"event":"notes//bad_2"}`+"\n", "", "audit", "1", "-json")
	if who := whoami(); !strings.Contains(who, "@") {
		t.Errorf("without -as it was %q", who)
	}
}

func TestTheCommandWithoutHandlersFindsTheSourcesThatAreStored(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`insert into idem_events (event, type, key, state) values ('other//e1', 'paid', '', 'parked')`)
	s.exec(`insert into idem_payloads (event, source, received_at, body) values ('other//e1', 'other', now(), '{}')`)
	s.prebuilt()
	_, out, _ := s.idem("list", "-json", "-state", "parked")
	if strings.Count(out, `"source":"notes"`) != 3 || strings.Count(out, `"source":"other"`) != 1 {
		t.Error(out)
	}
	_, out, _ = s.idem("stats", "-source", "other", "-json")
	if !strings.Contains(out, `"source":"other"`) || strings.Contains(out, `"source":"notes"`) {
		t.Error(out)
	}
	s.wantSays(exitUsage, "idem requeue, and its workers process them. Else build the ten-line program", "replay")
	s.want(exitDone, "3 events of notes: discarded\n1 event of other: discarded\n", "", "discard", "-state", "parked", "-yes", "-reason", "x")
	s.want(exitDone, "1 event of notes: requeued for the workers; idem watch shows them go\n", "", "requeue", "-type", "refunded")
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
		i.Retention = 6 * 24 * time.Hour
		return i
	}}
	s.want(exitDone, "1 event of notes: forgotten\n", "", "prune", "-as", "ana")
	s.wantText(`select concat_ws(', ', actor, action, filter, result) from idem_audit`, "ana, prune, older than 6d 0h; parked ones: never, 1 forgotten")
	s.want(exitDone, "2 events of notes: forgotten\n", "", "prune", "-retention", "12h", "-parked-retention", "5d", "-yes")
	s.wantText(`select string_agg(substring(event from '[^/]*$'), ' ' order by event) from idem_events`, "bad_5&77 evt_3 evt_4 bad_6")
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

// A terminal gets one screen after another, a file gets lines. Between two looks
// it rests.
func TestWatchRedrawsInATerminalAndAddsLinesElsewhere(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, c := range []struct {
		args    []string
		redraws bool
		want    string
		times   int
	}{
		{nil, false, "pending 2 (5d 0h)  retrying 0  unhandled 1 (1d 0h)  parked 3 (6d 0h)  blocked entities 1\n", 3},
		{nil, true, "\x1b[H\x1b[2J", 3},
		{[]string{"-json"}, true, `"blocked_keys":1}` + "\n", 3},
	} {
		p, out, complaints := s.program(append([]string{"watch", "-every", "7s"}, c.args...)...)
		p.redraws = c.redraws
		ctx, cancel := context.WithCancel(t.Context())
		rests := 0
		p.pause = func(ctx context.Context, d time.Duration) error {
			if rests++; rests == c.times || d != 7*time.Second {
				cancel()
			}
			return ctx.Err()
		}
		status := p.run(ctx)
		if got := strings.Count(out.String(), c.want); got != c.times || status != exitDone || complaints.Len() > 0 {
			t.Errorf("watch %q: exit status %d, %d times %q in %q, %s", c.args, status, got, c.want, out, complaints)
		}
	}
}

// Postgres may restart while somebody watches.
func TestWatchGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	p, out, complaints := s.program("watch", "-times", "3")
	p.pause = func(context.Context, time.Duration) error {
		if complaints.Len() == 0 {
			s.exec(`alter table idem_payloads rename to away`)
		} else {
			s.exec(`alter table away rename to idem_payloads`)
		}
		return nil
	}
	if status := p.run(t.Context()); status != exitDone || strings.Count(out.String(), "pending 2") != 2 || strings.Count(complaints.String(), "\n") != 1 {
		t.Errorf("exit status %d, %s, %s", status, out, complaints)
	}
}

func TestErrorsThatHaveOneUsualCauseSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := &shop{T: t}
	for code, says := range map[string]string{
		"42501": "idem doctor says which rights are missing",
		"42P05": "add default_query_exec_mode=exec to the database's address",
		"26000": "add default_query_exec_mode=exec to the database's address",
	} {
		p, _, complaints := s.program()
		if p.complain(t.Context(), fmt.Errorf("idem: counting: %w", &pgconn.PgError{Code: code})); !strings.Contains(complaints.String(), says) {
			t.Errorf("%s: %s", code, complaints)
		}
	}
}

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

func TestADatabaseThatCannotBeUsedIsSaidWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for url, c := range map[string]struct {
		status int
		says   string
	}{
		"nonsense hunter2":                      {exitUsage, "the address of the database is not understood"},
		"postgres://u:hunter2@127.0.0.1:1/shop": {exitFailed, "the database does not answer"},
	} {
		s := &shop{T: t, url: url}
		status, out, complaints := s.idem("stats")
		if status != c.status || out != "" || !strings.Contains(complaints, c.says) || strings.Contains(complaints, "hunter2") {
			t.Errorf("%s: exit status %d, %q", url, status, complaints)
		}
	}
	s := newShop(t)
	s.exec(`drop table idem_payloads, idem_events cascade`)
	s.wantSays(exitFailed, "the tables are missing", "stats")
	s.prebuilt()
	s.wantSays(exitFailed, "the tables are not there: run idem migrate", "stats")
}

// Not parallel: it sets the environment.
func TestTheEnvironmentNamesTheDatabase(t *testing.T) {
	s := newShop(t)
	s.badNight()
	p, out, complaints := s.program()
	p.Args = []string{"stats"}
	t.Setenv("DATABASE_URL", s.url)
	if status := p.run(t.Context()); status != exitDone || !strings.HasPrefix(out.String(), "SOURCE  PENDING") {
		t.Errorf("exit status %d, %s, %s", status, out, complaints)
	}
	config := s.pool.Config().ConnConfig
	t.Setenv("DATABASE_URL", "")
	t.Setenv("PGHOST", config.Host)
	t.Setenv("PGPORT", fmt.Sprint(config.Port))
	t.Setenv("PGUSER", config.User)
	t.Setenv("PGDATABASE", config.Database)
	t.Setenv("PGPASSWORD", config.Password)
	t.Setenv("PGOPTIONS", config.RuntimeParams["options"])
	p, out, complaints = s.program()
	p.Args = []string{"stats"}
	if status := p.run(t.Context()); status != exitDone || !strings.HasPrefix(out.String(), "SOURCE  PENDING") {
		t.Errorf("exit status %d, %s, %s", status, out, complaints)
	}
}

func TestAnOutputThatBreaksIsAnError(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, args := range [][]string{{"list"}, {"list", "-json"}, {"stats"}, {"stats", "-json"}, {"blocked"}, {"show", "bad_2"}, {"watch"}, {"watch", "-json"}} {
		p, _, complaints := s.program(args...)
		p.Stdout = writer{iotest.ErrReader(os.ErrClosed)}
		if status := p.run(t.Context()); status != exitFailed || !strings.Contains(complaints.String(), os.ErrClosed.Error()) {
			t.Errorf("idem %q: exit status %d, %s", args, status, complaints)
		}
	}
}

// writer fails as its reader does.
type writer struct {
	r interface{ Read([]byte) (int, error) }
}

func (w writer) Write(p []byte) (int, error) { return w.r.Read(p) }

// Whoever wants events kept permanently writes many days.
func TestAgeThatNoDurationCanHoldIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	before := s.text(`select count(*) from idem_events`)
	for _, days := range []string{"213504d", "300000d", "-213504d", "9999999999999d"} {
		s.wantSays(exitUsage, "it is no time such as 45d or 12h", "prune", "-yes", "-retention", days)
		s.wantSays(exitUsage, "nor how long ago", "list", "-from", days)
	}
	s.wantText(`select count(*) from idem_events`, before)
}

// A provider names events, and handlers write errors: neither may move the cursor
// of a terminal.
func TestComplaintsHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("bad_1 paid pay_1")
	s.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception E'\x1b[2J\x1b]0;owned\x07'; end $$;
		create trigger refuse before insert on idem_audit for each row execute function refuse()`)
	status, _, complaints := s.idem("requeue", "bad_1")
	if status != exitFailed || !strings.Contains(complaints, "could not be recorded") || strings.ContainsAny(complaints, "\x1b\x07") {
		t.Errorf("exit status %d, stderr %q", status, complaints)
	}
}

// What is discarded is gone: nobody discards what they were not asked about.
func TestDiscardOfMoreThanWasAskedAboutIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("bad_1 paid pay_1", "bad_2 paid pay_2")
	p, out, complaints := s.program("discard", "-type", "paid", "-reason", "a test")
	p.asks, p.Stdin = true, readerFunc(func(b []byte) (int, error) {
		s.accept("bad_3 paid pay_3")
		return copy(b, "y\n"), nil
	})
	status := p.run(t.Context())
	if says := "nothing of notes was changed: 3 events match now, not 2: look again"; status != exitFailed || !strings.Contains(complaints.String(), says) || out.Len() > 0 {
		t.Errorf("exit status %d, %q, %q, want it to say %q", status, out, complaints, says)
	}
	s.wantText(`select count(*) from idem_events where state = 'parked'`, "3")
}
