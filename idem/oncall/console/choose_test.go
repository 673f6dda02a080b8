package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/console"
)

func TestEventsOfCheckboxesAreActedUponAndNoOthers(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1", "e2", "e3")
	a.accept(a.first.Accept, idem.Event{ID: "n1", Type: "new", Payload: body("n1")})
	a.fix()
	list := a.get("events?source=letters")
	if n := strings.Count(list.body, `type="checkbox" form="choose" name="event"`); n != 3 || strings.Contains(list.body, "checked") {
		t.Errorf("the list has %d boxes, want 3 that are not checked:\n%s", n, list.body)
	}
	if all := a.get("events?source=letters&boxes=all"); strings.Count(all.body, " checked>") != 3 {
		t.Error("the link to choose all on the page does not check all boxes:\n" + all.body)
	}
	form := list.form("choose")
	form.Set("action", "replay")
	form["event"] = []string{"letters//e1", "letters//e3", "notes//n1"}
	question := a.post("choose", form)
	question.want(200, "2 events", "e1", "e3")
	question.without("<bdi>e2<", "<bdi>n1<")
	a.post("act", question.form("act")).want(303)
	a.wantState("letters", "e1", idem.StateDone)
	a.wantState("letters", "e2", idem.StateParked)
	a.wantState("letters", "e3", idem.StateDone)
	a.wantState("notes", "n1", idem.StateUnhandled)
	a.get("trail?source=letters").want(200, "2 done")
}

func TestConflictsAreActedUponByTheirCheckboxes(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1", "e2", "e3")
	for _, id := range []string{"e1", "e2"} {
		a.accept(a.inbox.Accept, idem.Event{ID: id, Type: "paid", Key: "order-" + id, Payload: []byte(`{"id":"another"}`)})
	}
	list := a.get("conflicts?source=letters")
	if n := strings.Count(list.body, `type="checkbox" form="choose" name="event"`); n != 2 {
		t.Errorf("the list has %d boxes, want 2:\n%s", n, list.body)
	}
	form := list.form("choose")
	form.Set("action", "discard")
	form["event"] = []string{"letters//e1"}
	question := a.post("choose", form)
	question.want(200, "1 event", "e1")
	form = question.form("act")
	form.Set("reason", "a second account")
	a.post("act", form).want(303)
	a.wantState("letters", "e1", idem.StateDiscarded)
	a.wantState("letters", "e2", idem.StatePending)
	a.page.Access = func(*http.Request) (string, console.Access) { return "eve", console.Access{See: true} }
	a.get("conflicts?source=letters").without("checkbox", "<form method=\"post\"")
}

// An empty choice is none, and not all.
func TestNothingChosenIsNothingDone(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	shown := a.get("confirm?source=letters&action=discard").form("act").Get("shown")
	for _, action := range []string{"discard", "replay", "erase"} {
		form := url.Values{"source": {"letters"}, "chosen": {"1"}, "action": {action}}
		a.post("choose", form).want(200, "0 events", "Nothing is chosen")
		form.Set("reason", "x")
		form.Set("sure", "letters")
		form.Set("shown", shown) // as if it had been on a page
		a.post("act", form).want(409, "nothing was done")
	}
	a.post("choose", url.Values{"source": {"letters"}, "action": {"erase"}}).want(400)
	a.post("choose", url.Values{"source": {"letters"}, "action": {"replay"}, "chosen": {"1"}, "event": make([]string, 251)}).want(400, "more events than a page lists")
	a.wantState("letters", "e1", idem.StateParked)
}

// By name, and so in any state.
func TestEraseTakesTheEventsOfCheckboxesThatAreOfItsSource(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1", "e2")
	list := a.get("entity?source=letters&entity=order-e2").form("choose")
	list.Set("action", "erase")
	list["event"] = []string{"letters//e2", "notes//n1"}
	form := a.post("choose", list).form("act")
	for field, value := range map[string]string{"reason": "request 18", "sure": "letters", "open": "1"} {
		form.Set(field, value)
	}
	a.post("act", form).want(303)
	a.wantState("letters", "e1", idem.StateParked)
	a.get("event?source=letters&id=e2").want(200, "State discarded", "It is not stored", "What was done by hand", "erase request 18 erased")
	a.get("event?source=letters&id=e2").without("no such order")
}

// A handler's error may have a person's data: whoever may not see bodies does not see it.
func TestWhoMayNotRevealSeesNoErrors(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1", "e2")
	a.accept(a.inbox.Accept, idem.Event{ID: "e3", Type: "paid", Key: "order-e1", Payload: body("e3")})
	a.confirm("confirm?action=dry-run"+oneEvent, "").want(303)
	const failure = "no such order"
	addresses := []string{
		"", "events?source=letters", "event?source=letters&id=e1", "event?source=letters&id=e3", "entity?source=letters&entity=order-e1", "find?q=order-e1",
		"blocked?source=letters", "trail?source=letters", "action?source=letters&id=1", "confirm?source=letters&action=replay", "confirm?source=letters&action=erase&one=1&id=e1",
		"events?source=letters&entity=order-e1", "conflicts?source=letters",
	}
	shown := 0
	for _, address := range addresses {
		shown += strings.Count(a.get(address).body, failure)
	}
	if shown < 8 {
		t.Errorf("errors are shown %d times to who may see them: this proves nothing", shown)
	}
	a.may(false)
	for _, address := range addresses {
		p := a.get(address)
		p.want(200)
		p.without(failure)
	}
	a.get("event?source=letters&id=e1").want(200, "it has failed once; nothing happens to it")
}
