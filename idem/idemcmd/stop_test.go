package idemcmd

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/internal/command"
)

// action records one of bob's that has not ended. seen is its last sign of life, in SQL; it has done
// the first of its events.
func (s *shop) action(verb, seen string, events ...string) {
	s.Helper()
	const begin = `
with begun as (
	insert into idem_audit (actor, action, source, filter, reason, events, seen_at) values ('bob', $1, 'notes', 'all', 'fixed', $2, `
	if _, err := s.pool.Exec(s.Context(), begin+seen+`) returning id
)
insert into idem_audit_events (action, event, result) select id, $3, 'done' from begun`, verb, events, events[0]); err != nil {
		s.Fatal(err)
	}
}

// A replay that another person stops ends after the event that is being processed. The same command
// goes on: each event has one effect.
func TestAReplayIsStoppedFromElsewhereAndTheSameCommandGoesOn(t *testing.T) {
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
	s.want(command.Done, "action 1, the replay of bob, is asked to end: idem audit shows when it has\n", "", "stop", "-as", "ana", "-reason", "wrong fix", "1")
	s.wantSays(command.Failed, "ana has asked for it", "stop", "1")
	close(stopped)
	if code := <-status; code != command.Failed || !strings.Contains(complaints, "1 of 3 events were replayed") || !strings.Contains(complaints, "stopped by ana") {
		t.Errorf("the replay that was stopped: exit status %d, %s", code, complaints)
	}
	s.wantSays(command.Failed, "the action does not run", "stop", "1")

	s.types = "n\n"
	s.wantSays(command.Failed, "Replay these 2 events? [y/N] idem: nothing was changed: the answer was not y", "replay", "-type", "paid")
	s.types = ""
	s.wantText(`select count(*) from effects where event like 'bad%'`, "1")
	s.want(command.Done, "2 events of notes: replayed: 2 done, 0 failed, 0 without a handler\n", "", "replay", "-yes", "-as", "ana", "-type", "paid")
	s.wantText(`select count(*) || ' ' || count(distinct event) from effects where event like 'bad%'`, "3 3")
	s.wantText(`select string_agg(concat_ws(' ', actor, action, nullif(reason, '')), ', ' order by id) from idem_audit`, "bob replay, ana stop wrong fix, ana replay")
}

// A discard that was broken off changed nothing. Somebody may have requeued one of its events since: the
// same command chooses those that are left, shows them, and asks anew.
func TestADiscardThatIsBrokenOffIsShownAndConfirmedAnew(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	events, err := s.pool.Begin(t.Context())
	if err == nil {
		_, err = events.Exec(t.Context(), `lock table idem_events in exclusive mode`)
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
	for s.text(`select count(*) from pg_locks where not granted and relation = 'idem_events'::regclass`) == "0" {
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

	s.want(command.Done, "1 event of notes: requeued for the workers; idem watch shows them go\n", "", "requeue", "-yes", "-without-workers", "bad_2")
	s.types = "y\n"
	s.wantSays(command.Done, "Discard these 2 events? [y/N] ", "discard", "-reason", "test orders", "-type", "paid")
	s.wantText(`select string_agg(event_id || ' ' || state, ', ' order by event_id) from idem_event_log where event_id like 'bad%'`, "bad_2 pending, bad_5&77 discarded, bad_6 discarded")
}

func TestAnActionThatCannotBeStoppedSaysWhy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.action("erase", "now() - interval '1 hour'", "notes//bad_2", "notes//bad_5&77")
	s.wantSays(command.Misused, "give the number of one action: idem audit prints them", "stop")
	s.wantSays(command.Misused, "give the number of one action: idem audit prints them", "stop", "evt_1")
	s.wantSays(command.Nothing, "there is no action 77", "stop", "77")
	s.wantSays(command.Failed, "the action does not run: it has ended, or its process is dead", "stop", "1")
	s.wantText(`select count(*) from idem_audit`, "1")
}
