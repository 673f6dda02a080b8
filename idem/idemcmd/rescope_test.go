package idemcmd

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
)

// An account has been without a scope, and gets one.
func TestRescopeMovesAnAccountOnceAPersonHasSeenWhat(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("e1 paid o1", "e2 paid o1", "shop-2 e1 paid o1")
	want := func(events string) {
		t.Helper()
		s.wantText(`select string_agg(event, ' ' order by event) from idem_events`, events)
	}
	args := []string{"rescope", "-source", "notes", "-account", "", "-to-account", "shop-1", "-as", "ana", "-reason", "a second shop"}
	s.types = "n\n"
	if status, _, complaints := s.idem(args...); status != command.Failed || !strings.Contains(complaints, "2 events of notes.\n"+
		"All of account \"\" would be moved to notes \"shop-1\". Every process that receives or processes events of the source\nhas to be stopped,") {
		t.Errorf("exit status %d: %s", status, complaints)
	}
	want("notes//e1 notes//e2 notes/shop-2/e1")
	if status, out, _ := s.idem(append(args, "-dry-run")...); status != command.Done || !strings.HasPrefix(out, "2 events of notes.\n") {
		t.Errorf("exit status %d: %s", status, out)
	}
	want("notes//e1 notes//e2 notes/shop-2/e1")
	s.types = "y\n"
	if status, out, _ := s.idem(args...); status != command.Done || out != "2 events of notes: moved to notes \"shop-1\"\n" {
		t.Errorf("exit status %d: %s", status, out)
	}
	want("notes/shop-1/e1 notes/shop-1/e2 notes/shop-2/e1")
	s.wantText(`select actor || ': ' || action || ' ' || filter || ', ' || reason || ', ' || result from idem_audit`,
		`ana: rescope notes without a scope to notes "shop-1", a second shop, 2 moved`)
	if o, err := s.inbox.Accept(t.Context(), idem.Event{Source: "notes", Scope: "shop-1", ID: "e1", Type: "paid", Key: "o1"}); o != idem.Duplicate || err != nil {
		t.Errorf("it comes again: %s, %v, want a duplicate", o, err)
	}

	// The other one may not become the same.
	status, _, complaints := s.idem("rescope", "-account", "shop-2", "-to-account", "shop-1", "-yes")
	if status != command.Failed || !strings.Contains(complaints, "1 events are stored under both, so they may have been done twice: notes/shop-2/e1: see what was done for each") {
		t.Errorf("exit status %d: %s", status, complaints)
	}
	want("notes/shop-1/e1 notes/shop-1/e2 notes/shop-2/e1")
	if status, _, _ := s.idem("rescope", "-account", "shop-3", "-to-account", "shop-1"); status != command.Nothing {
		t.Errorf("exit status %d of an account without events", status)
	}
}

func TestRescopeIsToldWhatToMoveWhere(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.accept("e1 paid o1")
	for _, args := range [][]string{
		{"rescope"},
		{"rescope", "-account", ""},
		{"rescope", "-to-account", "shop"},
		{"rescope", "-account", "a", "-account", "b", "-to-account", "shop"},
	} {
		if status, _, complaints := s.idem(args...); status != command.Misused || !strings.Contains(complaints, "-account and -to-account, once each") {
			t.Errorf("%q: exit status %d: %s", args, status, complaints)
		}
	}
	s.receivers = nil
	s.exec(`insert into idem_events (event, type, key, state) values ('asaas//e1', '', '', 'done')`)
	if status, _, complaints := s.idem("rescope", "-account", "", "-to-account", "shop", "-yes"); status != command.Misused || !strings.Contains(complaints, "-source") {
		t.Errorf("exit status %d: %s", status, complaints)
	}
	s.want(command.Done, "1 event of notes: moved to memos without a scope\n", "", "rescope", "-source", "notes", "-account", "", "-to-account", "", "-to-source", "memos", "-yes")
	s.wantText(`select string_agg(event, ' ' order by event) from idem_events`, "asaas//e1 memos//e1")
}
