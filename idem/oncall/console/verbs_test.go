package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

const oneEvent = "&source=letters&state=parked&account=&id=e1&one=1"

// step is a form that a person is shown, fills in and sends.
type step struct {
	reason string // why it is here
	ask    string // of the page that asks
	shows  string // what that says, in pieces with … between them
	fields string // what the person fills in, or a broken browser
	status int    // of the answer; 0 is that the page has no form
	says   string // what a refusal says
	effect string // what is changed: events, and what the trail has since

	meanwhile func(*app) // while the page is looked at
	again     bool       // the form of the step before is sent once more
}

const (
	sent    = http.StatusSeeOther
	refused = http.StatusBadRequest
	late    = http.StatusConflict
)

// What an action does to events is proved in package operator: here it is what the page shows, what it wants to be
// filled in, and that it is done to the events that were shown. Steps of one story follow each other: e1, e2 and e3 are
// parked, e4 waits for e3, and e5 has no handler. The page has an ordinary role.
func TestEachActionShowsItsEventsAndIsDoneToTheseAlone(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]step{
		"replay": {
			{reason: "one event", ask: "action=replay" + oneEvent, shows: "1 event : …The handler of each would run here…Reason (optional)…e1", status: sent, effect: "e1 done; ana replay: 1 done, 0 failed, 0 without a handler"},
			{reason: "what is done is not done again", again: true, status: late, says: "none of the events any more that you were shown: nothing was done"},
			{reason: "all that a filter chooses", ask: "source=letters&type=paid&action=replay", shows: "3 events : …types paid; 3 by row key", fields: "reason=fixed", status: sent, effect: "e2 done, e3 done, e4 done; ana replay fixed: 3 done, 0 failed, 0 without a handler"},
			{reason: "a filter may choose none", ask: "source=letters&type=paid&action=replay", shows: "0 events …there is nothing to do"},
		},
		"dry run": {
			{reason: "it changes nothing", ask: "action=dry-run" + oneEvent, shows: "1 event : …is rolled back", status: sent, effect: "ana dry replay: 1 done, 0 failed, 0 without a handler"},
			{reason: "of several", ask: "source=letters&state=parked&action=dry-run", shows: "3 events : ", fields: "reason=a+look", status: sent, effect: "ana dry replay a look: 3 done, 0 failed, 0 without a handler"},
		},
		"requeue": {
			{
				reason: "nothing would happen to them", ask: "action=requeue" + oneEvent, shows: "1 event : …The workers of the inbox would process them again", status: late,
				meanwhile: func(a *app) { testkit.Exec(a, a.pool, `delete from idem_workers`) },
				says:      "No workers of this source are alive…nothing was done. Replay the events, or start the program",
			},
			{reason: "unless workers are alive", again: true, meanwhile: (*app).workersElsewhere, status: sent, effect: "e1 pending; ana requeue: 1 requeued"},
			{reason: "once", again: true, status: late, says: "none of the events any more that you were shown: nothing was done"},
			{
				reason: "a list of others is another list", ask: "source=letters&state=parked&action=requeue", shows: "2 events : ", fields: "reason=fixed", status: sent,
				meanwhile: func(a *app) {
					testkit.Exec(a, a.pool, `update idem_events set state = 'pending' where event like '%/e2'; update idem_events set state = 'parked' where event like '%/e4'`)
				},
				effect: "e2 pending, e3 pending, e4 parked; ana requeue fixed; of 2 events that were shown, 1 had left the list, and 1 came since: those are left alone: 1 requeued",
			},
		},
		"acknowledge": {
			{reason: "it stays as it is", ask: "action=acknowledge" + oneEvent, shows: "1 event : …They would stay as they are", fields: "reason=ticket+7", status: sent, effect: "e1 parked acknowledged; ana acknowledge ticket 7: 1 acknowledged"},
			{reason: "and is taken back", ask: "action=unacknowledge" + oneEvent, shows: "1 event : …They would make health red again", status: sent, effect: "e1 parked; ana unacknowledge: 1 unacknowledged"},
			{reason: "once", ask: "action=unacknowledge" + oneEvent, shows: "0 events "},
			{reason: "a list of all is of those that have failed", ask: "source=letters&action=acknowledge", shows: "3 events : ", status: sent, effect: "e1 parked acknowledged, e2 parked acknowledged, e3 parked acknowledged; ana acknowledge: 3 acknowledged"},
		},
		"discard": {
			{reason: "it needs a reason", ask: "action=discard" + oneEvent, shows: "1 event : …This cannot be undone…Reason …e1", status: refused, says: "Say why: nothing was done"},
			{reason: "with words", again: true, fields: "reason=+%0A+", status: refused, says: "Say why: nothing was done"},
			{reason: "it is done", again: true, fields: "reason=noise", status: sent, effect: "e1 discarded; ana discard noise: 1 discarded"},
			{reason: "those behind them go on", ask: "source=letters&state=parked&action=discard", shows: "2 events : …1 event waits behind them, and would go on."},
			{reason: "a form without its events does nothing", ask: "source=letters&state=parked&action=discard", fields: "reason=noise&shown=", status: late, says: "nothing was done"},
			{reason: "nor a broken one", again: true, fields: "reason=noise&shown=x", status: late, says: "nothing was done"},
			{reason: "nor one that no browser sends", again: true, fields: "reason=noise&shown=!", status: late, says: "nothing was done"},
			{reason: "nor one with other events", again: true, fields: "reason=noise&shown=AAAAAAAAAAA", status: late, says: "nothing was done"},
			{reason: "all of a source need its name", ask: "source=letters&action=discard", shows: "4 events : …These are all events of letters that are not done…type letters", fields: "reason=noise&sure=", status: refused, says: "type the name of the source, letters: nothing was done"},
			{reason: "which is no yes", again: true, fields: "reason=noise&sure=yes", status: refused, says: "type the name of the source, letters: nothing was done"},
			{reason: "nor another's", again: true, fields: "reason=noise&sure=notes", status: refused, says: "type the name of the source, letters: nothing was done"},
			{reason: "with it they are discarded", again: true, fields: "reason=noise&sure=+letters+", status: sent, effect: "e2 discarded, e3 discarded, e4 discarded, e5 discarded; ana discard noise: 4 discarded"},
		},
		"erase": {
			{reason: "it needs a reason", ask: ofOne + "&id=e0", shows: "Erase? 1 event …It stays that they came…Not reached: the application's own tables…Reason This cannot be undone. To erase, type letters", fields: "sure=letters", status: refused, says: "Say why"},
			{reason: "and the name of the source", again: true, fields: "reason=request+17&sure=", status: refused, says: "To erase these events, type the name of the source, letters: nothing was done"},
			{reason: "which is no yes", again: true, fields: "reason=request+17&sure=yes", status: refused, says: "To erase these events, type the name of the source, letters: nothing was done"},
			{reason: "nor another's", again: true, fields: "reason=request+17&sure=notes", status: refused, says: "To erase these events, type the name of the source, letters: nothing was done"},
			{reason: "a done one is erased", again: true, fields: "reason=request+17&sure=letters", status: sent, effect: "e0 done without a body; ana erase request 17: 1 erased"},
			{reason: "what is not done is left alone", ask: ofOne + "&id=e1", shows: "Erase? 1 event …1 of them is not done, and is left alone…Give those up, and erase them", fields: "reason=request+18&sure=letters", status: sent, effect: "ana erase request 18: 0 erased; 1 left alone: not done"},
			{reason: "unless that is meant", again: true, fields: "reason=request+18&sure=letters&open=1", status: sent, effect: "e1 discarded without a body; ana erase request 18: 1 erased"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := openApp(t, openAsRole(t))
			a.inbox.KeepPayloads = true
			a.fix()
			a.letters("e0")
			a.broken = true
			a.letters("e1", "e2", "e3")
			a.accept(a.inbox.Accept, idem.Event{ID: "e4", Type: "paid", Key: "order-e3", Payload: body("e4")})
			testkit.Exec(t, a.pool, `insert into idem_events (event, type, key, state) values ('letters//e5', 'sent', '', 'unhandled');
				insert into idem_payloads (event, source, received_at, body) values ('letters//e5', 'letters', now(), '{}')`)
			a.fix()
			var form url.Values
			for _, c := range steps {
				form = a.step(c, form)
			}
		})
	}
}

const ofOne = "action=erase&source=letters&account=&one=1"

// step asks as ana, sends the form, and checks all that comes of it. It returns the form.
func (a *app) step(c step, form url.Values) url.Values {
	a.Helper()
	events, trail := a.stored()
	if !c.again {
		page := a.get("confirm?" + c.ask)
		page.want(http.StatusOK)
		if rest := page.text(); c.shows != "" {
			for piece := range strings.SplitSeq(c.shows, "…") {
				_, after, ok := strings.Cut(rest, piece)
				if !ok {
					a.Errorf("%s: the page does not show %q in its place:\n%s", c.reason, piece, page.text())
					break
				}
				rest = after
			}
		}
		if c.status == 0 {
			return nil
		}
		form = page.form("act")
		a.workersElsewhere()
	}
	if c.meanwhile != nil {
		c.meanwhile(a)
	}
	filled := maps.Clone(form)
	fields, err := url.ParseQuery(c.fields)
	if err != nil {
		a.Fatal(err)
	}
	maps.Copy(filled, fields)
	got := a.post("act", filled)
	if got.status != c.status {
		a.Errorf("%s: the answer is %d, want %d: %s", c.reason, got.status, c.status, got.text())
	}
	for piece := range strings.SplitSeq(c.says, "…") {
		if !strings.Contains(got.text(), piece) {
			a.Errorf("%s: the answer does not say %q:\n%s", c.reason, piece, got.text())
		}
	}
	if c.status == sent && got.header.Get("Location") != "trail?source=letters" {
		a.Errorf("%s: it leads to %q", c.reason, got.header.Get("Location"))
	}
	now, lines := a.stored()
	did := strings.TrimPrefix(strings.Join(testkit.Changed(events, now), ", ")+"; "+strings.Join(lines[len(trail):], "; "), "; ")
	if want := c.effect; strings.TrimSuffix(did, "; ") != want {
		a.Errorf("%s: the effect is\n%s\nwant\n%s", c.reason, did, want)
	}
	if c.status == sent {
		a.get("trail?source=letters").want(http.StatusOK, fields.Get("reason"), lines[len(lines)-1][strings.LastIndex(lines[len(lines)-1], ": ")+2:])
	}
	return form
}

// stored returns the state of each event, and the lines of the trail.
func (a *app) stored() (events map[string]string, trail []string) {
	a.Helper()
	events = testkit.QueryOne[map[string]string](a, a.pool, `
		select coalesce(jsonb_object_agg(replace(event, 'letters//', ''), concat_ws(' ', state,
			(select 'acknowledged' from idem_payloads p where p.event = e.event and acknowledged_at is not null),
			case when not exists (select from idem_payloads p where p.event = e.event union all select from idem_archive p where p.event = e.event) then 'without a body' end)), '{}')
		from idem_events e`)
	return events, testkit.TrailLines(a, a.pool)
}
