//go:build long

package idemcmd

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
)

// A discard that was broken off changed nothing. Somebody may have requeued one of its events since: the
// same command chooses those that are left, shows them, and asks anew.
func TestADiscardThatIsBrokenOffIsShownAndConfirmedAnew(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.exec(`create table gate (); create function pass_gate() returns trigger language plpgsql as $$ begin lock table gate in share mode; return new; end $$;
		create trigger gate before update on idem_events for each row execute function pass_gate()`)
	events, err := s.pool.Begin(t.Context())
	if err == nil {
		_, err = events.Exec(t.Context(), `lock table gate`)
	}
	if err != nil {
		t.Fatal(err)
	}
	status, complaints := make(chan int), ""
	go func() {
		code, _, said := s.idem("discard", "-yes", "-as", "bob", "-reason", "test orders", "-type", "paid")
		complaints = said
		status <- code
	}()
	for s.text(`select count(*) from pg_locks where not granted and relation = 'gate'::regclass`) == "0" {
	}
	s.want(command.Done, "action 1, the discard of bob, is asked to end: idem audit shows when it has\n", "", "stop", "-as", "ana", "1")
	code := <-status
	if err := events.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	const says = "stopped by ana: nothing was changed, unless idem audit has its result. Give the command again: it shows the events that are left, and asks anew"
	if code != command.Failed || !strings.Contains(complaints, says) {
		t.Errorf("the discard that was stopped: exit status %d, %s", code, complaints)
	}
	s.wantText(`select count(*) from idem_events where state = 'discarded'`, "0")

	s.want(command.Done, "1 event of notes: requeued for the workers\n", "", "requeue", "-yes", "-without-workers", "bad_2")
	s.types = "y\n"
	s.wantSays(command.Done, "Discard these 2 events? [y/N] ", "discard", "-reason", "test orders", "-type", "paid")
	s.wantText(`select string_agg(event_id || ' ' || state, ', ' order by event_id) from idem_event_log where event_id like 'bad%'`, "bad_2 pending, bad_5&77 discarded, bad_6 discarded")
}
