package idemcmd

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestEraseAsksAlsoAboutASingleEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.wantSays(command.Misused, "nobody is at a terminal to confirm it", "erase", "-reason", "request 17", "bad_2", "-discard")
	s.types = "n\n"
	s.wantSays(command.Failed, "Erase this event?", "erase", "-reason", "request 17", "bad_2", "-discard")
	s.wantText(`select state from idem_events where event like '%/bad_2'`, "parked")
	s.types = "y\n"
	s.wantSays(command.Done, "This cannot be undone.\nIt stays that they came", "erase", "-reason", "request 17", "-as", "ana", "bad_2", "-discard")
	s.wantText(`select state || ': ' || last_error from idem_events where event like '%/bad_2'`, "discarded: discarded: erased")
	s.wantText(`select string_agg(actor || ' ' || action || ' ' || events::text || ' ' || reason || ': ' || result, ', ') from idem_audit`,
		"ana erase {notes//bad_2} request 17: 1 erased")
}

func TestEraseIsToldWhatAndWhy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.wantSays(command.Misused, "give a -reason", "erase", "-yes", "bad_2")
	s.wantSays(command.Misused, "say what to erase", "erase", "-yes", "-reason", "request 17")
	s.wantSays(command.Misused, "say what to erase", "erase", "-yes", "-reason", "request 17", "-account", "store-2")
	s.wantSays(command.Nothing, "no event matched", "erase", "-yes", "-reason", "request 17", "-entity", "pay_9")
	s.wantText(`select count(*) from idem_payloads where source <> ''`, "6")
	s.wantText(`select count(*) from idem_audit`, "0")
}

func TestDiscardSaysHowManyLaterEventsGoOn(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.types = "n\n"
	s.wantSays(command.Failed, "Behind them wait 2 events, which would go on.\n", "discard", "-reason", "x", "bad_2", "bad_5&77")
	s.wantSays(command.Failed, "Behind them wait 0 events, which would go on.\n", "discard", "-reason", "x", "bad_2", "evt_3", "evt_4", "-state", "parked,pending")
}

// taken notes what is published.
type taken []broker.Message

func (b *taken) Publish(_ context.Context, m broker.Message) error {
	*b = append(*b, m)
	return nil
}

// open is a source that takes every delivery.
type openNotes struct{ idem.Routes }

func (*openNotes) Name() string { return "notes" }
func (*openNotes) Open(*http.Request) (idem.Event, error) {
	return idem.Event{Source: "notes", ID: "relayed_1", Type: "paid", Payload: []byte(`{"id":"relayed_1","type":"paid"}`)}, nil
}

func TestReadmitAcceptsWhatTheRightSecretVerifies(t *testing.T) { // not parallel: it sets the environment
	const right, wrong = "the-secret-of-the-relay-in-front-of-it", "another-secret-of-thirty-two-characters"
	s := newShop(t)
	testkit.KeepAlive(s, s.pool, "notes")
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
	for _, step := range []struct {
		secrets string
		args    []string
		status  int
		says    string
	}{
		{"", []string{"readmit"}, command.Misused, "IDEM_RELAY_SECRETS is not set"},
		{"short", []string{"readmit", "-yes"}, command.Failed, "idem: a secret of Readmit has 5 characters"},
		{wrong, []string{"readmit", "-yes"}, command.Failed, "1 of the 1 event of notes left alone: set aside still"},
		{right, []string{"readmit", "-dry-run"}, command.Done, "would be verified again"},
		{wrong + " " + right, []string{"readmit", "-as", "ana", "-yes"}, command.Done, "1 event of notes: accepted"},
		{right, []string{"readmit"}, command.Nothing, ""},
	} {
		t.Setenv("IDEM_RELAY_SECRETS", step.secrets)
		status, out, complaints := s.idem(step.args...)
		if status != step.status || !strings.Contains(out+complaints, step.says) {
			t.Errorf("idem %q: exit status %d, %s%s, want %d and %q", step.args, status, out, complaints, step.status, step.says)
		}
	}
	s.wantText(`select string_agg(state, ' ' order by event) from idem_events where type in ('paid', 'paghooks.set_aside')`, "pending discarded") // by key: that of the event, that of the message
	s.wantText(`select actor || ' ' || action || ' ' || result from idem_audit where actor = 'ana'`, "ana readmit 1 accepted, 0 left")
}

// Of the messages that were shown, one is given up while the question stands, and another one comes.
func TestReadmitLeavesWhatWasNotShown(t *testing.T) { // not parallel: it sets the environment
	const secret = "the-secret-of-the-relay-in-front-of-it"
	t.Setenv("IDEM_RELAY_SECRETS", secret)
	s := newShop(t)
	setAside := func(text string) {
		t.Helper()
		if err := relay.To(s.inbox, secret)(t.Context(), broker.Message{Body: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	setAside("one")
	setAside("two")
	p, _, complaints := s.program("readmit", "-as", "ana", "-without-workers")
	p.command.Asks, p.command.In = true, readerFunc(func(b []byte) (int, error) {
		s.exec(`delete from idem_payloads where event = (select min(event) from idem_events);
			update idem_events set state = 'discarded' where event = (select min(event) from idem_events)`)
		setAside("three")
		return copy(b, "y\n"), nil
	})
	status := p.run(t.Context())
	for _, says := range []string{
		"idem: 1 of the 2 events of notes left alone:", "idem: 1 event of notes came since, left alone", "idem: 1 of the 2 events of notes left alone: set aside still",
	} {
		if status != command.Failed || !strings.Contains(complaints.String(), says) {
			t.Errorf("exit status %d, %s, want it to say %q", status, complaints, says)
		}
	}
	s.wantText(`select result from idem_audit`, "0 accepted, 1 left")
}

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
		"All of account \"\" would be moved to notes \"shop-1\". Every process that receives or processes events of the source has to be stopped,") {
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
