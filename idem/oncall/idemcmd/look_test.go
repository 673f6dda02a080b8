package idemcmd

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestEveryConditionOfAFilterIsAFlag(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	for _, c := range []struct {
		args []string
		want string // ids, the newest first
	}{
		{nil, "evt_7 bad_6 bad_5&77 evt_4 evt_3 bad_2"},
		{[]string{"-state", "unhandled,parked"}, "evt_7 bad_6 bad_5&77 bad_2"},
		{[]string{"-state", "pending"}, "evt_4 evt_3"},
		{[]string{"-state", "pending,unhandled", "-state", "parked"}, "evt_7 bad_6 bad_5&77 evt_4 evt_3 bad_2"},
		{[]string{"-account", "store-2"}, "bad_6"},
		{[]string{"-account", "store-2", "-account", ""}, "evt_7 bad_6 bad_5&77 evt_4 evt_3 bad_2"},
		{[]string{"-type", "refunded"}, "evt_7"},
		{[]string{"-type", "refunded,paid"}, "evt_7 bad_6 bad_5&77 evt_4 evt_3 bad_2"},
		{[]string{"-entity", "pay_2"}, "evt_4 evt_3 bad_2"},
		{[]string{"-id", "bad_2", "-id", "bad_6"}, "bad_6 bad_2"},
		{[]string{"bad_2", "-json", "bad_5&77"}, "bad_5&77 bad_2"},
		{[]string{"-failed"}, "bad_6 bad_5&77 bad_2"},
		{[]string{"-failed", "-entity", "pay_2"}, "bad_2"},
		{[]string{"-since", "3d"}, "evt_7 bad_6"},
		{[]string{"-until", "3d"}, "bad_5&77 evt_4 evt_3 bad_2"},
		{[]string{"-since", time.Now().AddDate(0, 0, -4).Format(time.RFC3339), "-until", time.Now().AddDate(0, 0, -2).Format("2006-01-02T15:04:05")}, "bad_6 bad_5&77"},
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
		if got := strings.Join(ids, " "); got != c.want || status != command.Done {
			t.Errorf("list %q: exit status %d, %q, want %q\n%s", c.args, status, got, c.want, complaints)
		}
	}
	s.wantSays(command.Done, "these are 2 of 6 events: -limit 0 prints all", "list", "-limit", "2")
}

// What failed, and is tried again by itself, is what somebody on call looks for first.
func TestListShowsWhatIsRetriedAndWhen(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("bad_1 paid pay_1", "bad_2 paid pay_2")
	s.exec(`update idem_events set state = 'pending' where event like '%bad_1'; update idem_payloads set due_at = '2099-01-01 10:00Z' where event like '%bad_1'`)
	_, out, _ := s.idem("list")
	for _, line := range []string{"NEXT ATTEMPT UTC", "pending  paid  pay_1   bad_1  1       2099-01-01 10:00:00  no such order\n", "parked   paid  pay_2   bad_2  1                            no such order\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("list does not have %q:\n%s", line, out)
		}
	}
}

func TestShowSaysWhatAnEventWaitsFor(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`insert into idem_workers values (1, 'notes', 'shop-1', 7, now(), now());
		update idem_events set claimed_by = 1, claimed_at = now() where event like '%evt_4'`)
	_, out, _ := s.idem("show", "evt_3")
	const why = "why           It waits for bad_2, an earlier paid of its entity, which is parked: it has failed once, last with: no such order; " +
		"nothing happens to it until it is replayed, requeued or discarded. 1 event of its entity waits for it.\n"
	if !strings.Contains(out, why) {
		t.Errorf("it says\n%swant\n%s", out, why)
	}
	type short struct {
		Why   operator.Why
		First struct {
			ID  string
			Why operator.Why
		}
		Claim   operator.Claim
		Workers int
	}
	for id, want := range map[string]short{
		"evt_3": {Why: operator.WhyWaits, Workers: 1, First: struct {
			ID  string
			Why operator.Why
		}{"bad_2", operator.WhyParked}},
		"evt_4": {Why: operator.WhyWorking, Workers: 1, Claim: operator.Claim{Host: "shop-1", PID: 7, Alive: true}, First: struct {
			ID  string
			Why operator.Why
		}{"bad_2", operator.WhyParked}},
	} {
		_, out, _ := s.idem("show", id, "-json")
		var got short
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// Whoever asks about a payment knows neither the account nor the event.
func TestShowFindsADoneEventOfAnyAccount(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("store-2 evt_1 paid pay_1", "evt_2 paid pay_1")
	for _, id := range []string{"evt_1", "evt_2", "notes/store-2/evt_1"} {
		if status, out, complaints := s.idem("show", id); status != command.Done || !strings.Contains(out, "\ndone          20") {
			t.Errorf("%s: exit status %d, %s%s", id, status, out, complaints)
		}
	}
	if status, _, _ := s.idem("show", "evt_1", "-account", "store-3"); status != command.Nothing {
		t.Errorf("of another account: exit status %d", status)
	}
}

// It takes a second for each five million or so.
func TestShowOfAnEntitySaysBeforeThatItReadsAllEvents(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("evt_1 paid pay_1")
	const says = "reading about 3,000,000 events, as there is no index by entity: idem help show says how to make one"
	s.exec(`update pg_class set reltuples = 3e6 where oid = 'idem_events'::regclass`)
	s.wantSays(command.Done, says, "show", "-entity", "pay_1")
	s.exec(`create index on idem_events (key)`)
	s.exec(`update pg_class set reltuples = 3e6 where oid = 'idem_events'::regclass`)
	if status, _, complaints := s.idem("show", "-entity", "pay_1"); status != command.Done || complaints != "" {
		t.Errorf("with an index: exit status %d, %s", status, complaints)
	}
	s.wantSays(command.Nothing, "none ever came, or they were forgotten", "show", "-entity", "pay_9")
	s.wantSays(command.Misused, "give it alone", "show", "-entity", "pay_1", "evt_1")
	s.wantSays(command.Misused, "give it alone", "show", "-entity", "pay_1", "-payload")
	s.accept("evt_2 paid pay_1")
	s.wantSays(command.Done, "these are the latest 1 event of pay_1: -limit 0 prints all", "show", "-entity", "pay_1", "-limit", "1")
}

func TestConflictsAreListedAndSaidOfTheEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.wantSays(command.Nothing, "idem: no event came again with another body", "conflicts")
	s.accept("evt_1 paid pay_1", "store-2 evt_2 paid pay_2", "evt_3 paid pay_3")
	for n, e := range []idem.Event{{ID: "evt_1"}, {Scope: "store-2", ID: "evt_2"}} {
		e.Type, e.Key, e.Payload = "paid", "pay_9", []byte(`{"order":"pay_9"}`)
		if o, err := s.inbox.Accept(t.Context(), e); o != idem.Duplicate || err != nil {
			t.Fatal(o, err)
		}
		s.exec(fmt.Sprintf(`update idem_events set conflict_at = conflict_at + interval '%d hours' where event like '%%%s'`, n, e.ID))
	}
	_, out, _ := s.idem("conflicts")
	s.golden("conflicts.txt", out)
	_, out, _ = s.idem("conflicts", "-json")
	s.golden("conflicts.json", out)
	s.wantSays(command.Done, "these are the latest 1 of 2 events of notes: -limit 0 prints all", "conflicts", "-limit", "1")
	_, out, _ = s.idem("show", "evt_1")
	s.golden("show_conflict.txt", out)
}

func TestBlockedSaysHowManyMoreThereAre(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`insert into idem_events (event, type, key, state) values ('notes//y1', 'paid', 'pay_9', 'parked'), ('notes//y2', 'paid', 'pay_9', 'pending')`)
	s.exec(`insert into idem_payloads (event, source, lane, received_at, body)
		select event, 'notes', 'notes//pay_9', now(), '' from idem_events where key = 'pay_9'`)
	_, out, _ := s.idem("blocked", "-json", "-limit", "1")
	if n := strings.Count(out, "\n"); n != 1 || !strings.Contains(out, `"pay_2"`) {
		t.Errorf("-limit 1 prints %d entities: %s", n, out)
	}
	s.wantSays(command.Done, "these are the oldest 1 of 2 blocked entities of notes: -limit 0 prints all", "blocked", "-limit", "1")
	_, out, _ = s.idem("blocked", "-json", "-limit", "0")
	if n := strings.Count(out, "\n"); n != 2 {
		t.Errorf("-limit 0 prints %d entities: %s", n, out)
	}
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
	s.exec(`drop table idem_audit cascade`)
	status, out, _ := s.idem("show", "bad_6", "-payload")
	if status != command.Failed || strings.Contains(out, "pay_6") {
		t.Errorf("without the audit trail: exit status %d, %s", status, out)
	}
}

func TestAnEventThatFailsIsShownWithTheCommandThatHasItTried(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.fail("evt_1 paid pay_1")
	const command = "idem requeue -state pending evt_1"
	if _, out, _ := s.idem("show", "evt_1"); !strings.HasSuffix(out, "\nOnce the cause is fixed:\n  "+command+"  # the workers try it now, and not when it is due\n") {
		t.Error(out)
	}
	s.deploy()
	s.follow(command)
	s.accept()
	s.wantText(`select state from idem_events`, "done")
}

// Whoever makes an event chooses its id, and an operator copies the line.
func TestAnIDThatLooksLikeAFlagIsPrintedAsAnID(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("-yes refunded pay_1")
	if _, out, _ := s.idem("show", "notes//-yes"); !strings.Contains(out, "\n  idem requeue -id -yes  # the workers of an inbox process it\n  idem replay -id -yes  # ") {
		t.Error(out)
	}
	s.want(command.Done, "1 event of notes: requeued for the workers\n", "", "requeue", "-yes", "-id", "-yes")
}

// Whoever makes an event chooses its id; a terminal would act on U+009B.
func TestJSONOfAnEventDoesNothingToATerminal(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("a\u009b2J\u202e refunded pay_1")
	if _, out, _ := s.idem("list", "-json"); !strings.Contains(out, `"a\u009b2J\u202e"`) {
		t.Errorf("%q", out)
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
	s.want(command.Nothing, "", "idem: nobody has done anything by hand\n", "audit")
	s.badNight()
	s.idem("requeue", "bad_2", "-yes", "-as", "ana", "-reason", "order 2 is there now")
	s.idem("replay", "bad_6", "bad_5&77", "-yes", "-as", "bia")
	s.exec(`update idem_audit set result = null, ended_at = null where id = 1`)
	_, out, _ := s.idem("audit")
	s.golden("audit.txt", out)
	_, out, _ = s.idem("audit", "-json", "-limit", "1")
	s.golden("audit.json", out)
	s.want(command.Done, "notes//bad_5&77\nnotes/store-2/bad_6\n", "", "audit", "2")
	s.want(command.Done, `{"event":"notes//bad_2"}`+"\n", "", "audit", "1", "-json")
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
	s.wantSays(command.Misused, "idem requeue, and its workers process them. Else build the ten-line program", "replay")
	s.want(command.Done, "3 events of notes: discarded\n1 event of other: discarded\n", "", "discard", "-state", "parked", "-yes", "-reason", "x")
	s.want(command.Done, "1 event of notes: requeued for the workers\n", "", "requeue", "-yes", "-type", "refunded")
}

// Two ids differ by a space or a control character only: what is printed for one never names the other.
func TestACommandThatIsPrintedNamesItsOwnEventInAShell(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ids := []string{"bad two", "bad  two", "bad\ttwo", "bad'two", "bad$(two)", `bad\two%s`, "bad\ntwo", "bad\n\n", "bad\x1b[31m", "bad\u202etwo"}
	for _, id := range ids {
		testkit.Exec(t, s.pool, `insert into idem_events (event, type, key, state) values ('notes//' || $1, 'paid', '', 'parked')`, id)
		testkit.Exec(t, s.pool, `insert into idem_payloads (event, source, received_at, body) values ('notes//' || $1, 'notes', now(), '{}')`, id)
	}
	for _, id := range ids {
		_, out, _ := s.idem("show", id)
		_, typed, _ := strings.Cut(out, "\n  idem requeue ")
		typed, _, _ = strings.Cut(typed, "  #")
		got, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+typed).Output()
		if string(got) != id || err != nil || terminal.Text(out) != out {
			t.Errorf("of %q it prints %q, which a shell takes for %q, %v", id, typed, got, err)
		}
	}
	if status, _, complaints := s.idem("discard", "-yes", "-reason", "a test", "bad  two"); status != command.Done {
		t.Fatal(status, complaints)
	}
	s.want(command.Done, "'notes//bad  two'\n", "", "audit", s.text(`select max(id) from idem_audit`))
}
