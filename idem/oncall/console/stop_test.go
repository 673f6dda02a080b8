package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/internal/testkit"
)

// may has the user be bob, who may reveal or not.
func (a *app) may(reveal bool) {
	a.page.Access = func(*http.Request) (string, console.Access) {
		return "bob", console.Access{See: true, Reveal: reveal, Act: true}
	}
}

func TestRunningActionIsStoppedFromThePageAndTheRestIsDoneAnew(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1", "e2", "e3")
	a.fix()
	second, goOn := make(chan struct{}), make(chan struct{})
	var tried []string
	a.mu.Lock()
	a.during = func(l *letter) {
		if tried = append(tried, l.ID); len(tried) == 2 {
			close(second)
			<-goOn
		}
	}
	a.mu.Unlock()
	a.page.WaitForNoAction()
	a.confirm("confirm?source=letters&action=replay", "deployed").want(303)
	<-second
	a.page.WaitForAll()
	const action = "action?source=letters&id=1"
	running := a.get(action)
	running.want(200, "it is running", "e1 done by it", "e2 not reached", "e3 not reached")
	stop := running.form("stop")

	a.may(true)
	first, again := make(chan answer), make(chan answer)
	go func() { first <- a.post("stop", stop) }()
	go func() { again <- a.post("stop", stop) }()
	one, other := <-first, <-again
	if one.status != 303 {
		one, other = other, one
	}
	if one.want(303); one.header.Get("Location") != "action?id=1&source=letters" {
		t.Errorf("a stop leads to %s", one.header.Get("Location"))
	}
	other.want(409, "Somebody has stopped this action already")
	ending := a.get(action)
	ending.want(200, "it ends: bob has stopped it")
	ending.without(`action="stop"`)
	close(goOn)
	for !strings.Contains(a.get(action).text(), "stopped by bob") {
	}
	stopped := a.get(action)
	stopped.want(200, "2 done, 0 failed, 0 without a handler; stopped by bob", "e3 not reached", "e2 done by it", "choose those events again")
	a.post("stop", stop).want(409, "does not run any more")
	a.wantState("letters", "e3", idem.StateParked)

	a.confirm("confirm?source=letters&action=replay", "").want(303)
	if diff := cmp.Diff([]string{"e1", "e2", "e3"}, tried); diff != "" {
		t.Error("attempts (-want +got):\n" + diff)
	}
	third := a.get("action?source=letters&id=3")
	third.want(200, "e3 done by it")
	third.without("choose those events again")
	a.get("event?source=letters&id=e1").want(200, "ana replay deployed done by it")
	a.get("trail?source=letters").want(200, "bob stop action 1")
}

func TestAnActionWhoseProcessDiedSaysSoAndNamesWhatItDidNotReach(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	testkit.Exec(t, a.pool, `insert into idem_audit (id, actor, action, source, filter, reason, events, seen_at)
			values (1, 'bob', 'replay', 'letters', 'all', 'deployed', '{letters//e1,letters//e2,letters//e3}', now());
		insert into idem_audit_events (action, event, result) values (1, 'letters//e1', 'done')`)
	const action = "action?source=letters&id=1"
	a.get(action).want(200, "it is running") // as far as anybody knows
	testkit.Exec(t, a.pool, `update idem_audit set seen_at = now() - interval '13 seconds'`)
	dead := a.get(action)
	dead.want(200, "1 of 3: 1 done, 0 failed, 0 without a handler", "its process died", "e1 done by it", "e2 not reached", "choose those events again")
	dead.without(`action="stop"`)
	a.get("trail?source=letters").want(200, "its process died")
}
