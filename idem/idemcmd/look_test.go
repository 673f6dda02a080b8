package idemcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

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

// Whoever makes an event chooses its id, and an operator copies the line.
func TestAnIDThatLooksLikeAFlagIsPrintedAsAnID(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("-yes refunded pay_1")
	if _, out, _ := s.idem("show", "notes//-yes"); !strings.Contains(out, "\nnext: idem replay -id -yes processes it, in a program with the handlers; idem requeue -id -yes leaves it") {
		t.Error(out)
	}
	s.want(exitDone, "1 event of notes: requeued for the workers; idem watch shows them go\n", "", "requeue", "-id", "-yes")
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
