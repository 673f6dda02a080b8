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

// A replay that another person stops ends after the event that is being processed, and is gone on
// with: each event has one effect.
func TestAReplayIsStoppedFromElsewhereAndResumed(t *testing.T) {
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
	s.wantSays(command.Failed, "action 1 is running: wait for its end, or end it with idem stop 1", "resume", "-yes", "1")
	close(stopped)
	if code := <-status; code != command.Failed || !strings.Contains(complaints, "1 of 3 events were replayed") || !strings.Contains(complaints, "stopped by ana") {
		t.Errorf("the replay that was stopped: exit status %d, %s", code, complaints)
	}
	s.wantSays(command.Failed, "the action does not run", "stop", "1")

	s.types = "n\n"
	s.wantSays(command.Failed, "Replay these 2 events? [y/N] idem: nothing was changed: the answer was not y", "resume", "1")
	s.types = ""
	s.wantText(`select count(*) from effects where event like 'bad%'`, "1")
	s.want(command.Done, "2 events of notes: replayed: 2 done, 0 failed, 0 without a handler\n", "", "resume", "-yes", "-as", "ana", "1")
	s.wantText(`select count(*) || ' ' || count(distinct event) from effects where event like 'bad%'`, "3 3")
	s.wantText(`select string_agg(concat_ws(' ', actor, action, nullif(reason, ''), continues), ', ' order by id) from idem_audit`, "bob replay, ana stop wrong fix, ana replay 1")
	s.wantSays(command.Failed, "somebody has gone on with action 1: see action 3", "resume", "-yes", "1")
	s.wantSays(command.Nothing, "action 3 has left no event that is not done", "resume", "-yes", "3")
}

func TestAnActionWhoseProcessDiedIsResumed(t *testing.T) {
	t.Parallel()
	const long = "now() - interval '1 hour'"
	for verb, c := range map[string]struct{ out, states string }{
		"requeue": {"2 events of notes: requeued for the workers; idem watch shows them go\n", "bad_2 parked, bad_5&77 pending, bad_6 pending"},
		"discard": {"2 events of notes: discarded\n", "bad_2 parked, bad_5&77 discarded, bad_6 discarded"},
	} {
		s := newShop(t)
		s.badNight()
		s.action(verb, long, "notes//bad_2", "notes//bad_5&77", "notes/store-2/bad_6")
		s.wantSays(command.Misused, "nobody is at a terminal to confirm it: give -yes, or -dry-run to look only", "resume", "1")
		s.want(command.Done, c.out, "", "resume", "-yes", "-without-workers", "-reason", "go on", "1")
		s.wantText(`select string_agg(event_id || ' ' || state, ', ' order by event_id) from idem_event_log where event_id like 'bad%'`, c.states)
		s.wantText(`select reason || ' ' || continues from idem_audit where id = 2`, "go on 1")
	}
}

func TestADryReplayIsResumedAsOneAndADryRunOfResumeRunsNoHandler(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	ran := 0
	s.receivers = []NewReceiver{receiver(func(ctx context.Context, tx pgx.Tx, n *note) error {
		ran++
		return pay(ctx, tx, n)
	})}
	s.action("dry replay", "now() - interval '1 hour'", "notes//bad_2", "notes//bad_5&77")
	s.wantSays(command.Done, "", "resume", "-dry-run", "1")
	if ran > 0 {
		t.Error("a dry run of resume runs a handler")
	}
	s.want(command.Done, `{"source":"notes","action":"resume","matched":1,"dry_run":true,"done":1,"failed":0,"unhandled":0}`+"\n", "", "resume", "-json", "1")
	s.wantText(`select count(*) from effects where event like 'bad%'`, "0")
	if ran != 1 {
		t.Errorf("%d handlers ran, want 1", ran)
	}
}

func TestAnActionThatCannotBeStoppedOrResumedSaysWhy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.action("erase", "now() - interval '1 hour'", "notes//bad_2", "notes//bad_5&77")
	s.action("replay", "now() - interval '1 hour'", "notes//bad_2", "notes//bad_5&77")
	for _, verb := range []string{"stop", "resume"} {
		s.wantSays(command.Misused, "give the number of one action: idem audit prints them", verb)
		s.wantSays(command.Misused, "give the number of one action: idem audit prints them", verb, "evt_1")
		s.wantSays(command.Nothing, "there is no action 77", verb, "77")
	}
	s.wantSays(command.Failed, "the action does not run: it has ended, or its process is dead", "stop", "2")
	s.wantSays(command.Failed, `action 1 is "erase", which nobody can go on with: do it again`, "resume", "-yes", "1")
	s.prebuilt()
	s.wantSays(command.Misused, "this program has no handlers, so it cannot replay events", "resume", "-yes", "2")
	s.wantText(`select count(*) from idem_audit`, "2")
}
