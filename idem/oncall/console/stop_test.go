package console_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/console"
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

	question := a.get("confirm?source=letters&action=replay")
	question.want(200, "1 event : ", "e3")
	question.without("<bdi>e1<", "<bdi>e2<")
	form := question.form("act")
	a.post("act", form).want(303)
	a.post("act", form).want(409)
	a.wantState("letters", "e3", idem.StateDone)
	if diff := cmp.Diff([]string{"e1", "e2", "e3"}, tried); diff != "" {
		t.Error("attempts (-want +got):\n" + diff)
	}
	third := a.get("action?source=letters&id=3")
	third.want(200, "e3 done by it")
	third.without("choose those events again")
	a.get("event?source=letters&id=e3").want(200, "What was done by hand", "bob replay done by it")
	a.get("event?source=letters&id=e1").want(200, "ana replay deployed done by it")
	a.get("trail?source=letters").want(200, "bob stop action 1")
}

// A process is killed in the handler of the second of three events. Others replay what is left: each event
// has one effect, and what was shown is what is done.
func TestReplayOfAKilledProcessIsDoneAnew(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pool := openPool(t, url, "")
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	exec1 := func(sql string) {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec1(`create table effects (event text)`)
	a := openApp(t, pool)
	a.letters("e1", "e2", "e3")
	process := exec.Command(os.Args[0], "-test.run=^TestChildThatReplays$")
	process.Env = append(os.Environ(), "CONSOLE_TEST_URL="+url)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "in e2" {
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // the signal says it

	a.fix()
	a.mu.Lock()
	a.record = true
	a.mu.Unlock()
	const action = "action?source=letters&id=1"
	a.get(action).want(200, "it is running") // as far as anybody knows
	exec1(`update idem_audit set seen_at = now() - interval '13 seconds'`)
	exec1(`update idem_workers set seen_at = now() - interval '13 seconds'`)
	dead := a.get(action)
	dead.want(200, "its process died", "e1 done by it", "e2 not reached", "choose those events again")
	dead.without(`action="stop"`)
	a.get("trail?source=letters").want(200, "its process died")

	a.may(true)
	form := a.get("confirm?source=letters&action=replay").form("act")
	answers := make(chan int)
	for range 2 { // two people at once
		go func() { answers <- a.post("act", form).status }()
	}
	if one, other := <-answers, <-answers; one != 303 && other != 303 {
		t.Errorf("two who replay the rest are answered %d and %d, want 303", one, other)
	}
	for _, id := range []string{"e1", "e2", "e3"} {
		a.wantState("letters", id, idem.StateDone)
	}
	var effects string
	if err := pool.QueryRow(t.Context(), `select string_agg(event, ' ' order by event) from effects`).Scan(&effects); err != nil || effects != "e1 e2 e3" {
		t.Errorf("the effects are of %q, %v, want e1 e2 e3", effects, err)
	}
	a.get(action).want(200, "1 of 3: 1 done, 0 failed, 0 without a handler", "its process died")
}

// TestChildThatReplays is the process that is killed.
func TestChildThatReplays(t *testing.T) {
	url := os.Getenv("CONSOLE_TEST_URL")
	if url == "" {
		return
	}
	a := openApp(t, openPool(t, url, ""))
	a.fix()
	a.record = true
	a.during = func(l *letter) {
		fmt.Println("in", l.ID)
		if l.ID == "e2" {
			select {}
		}
	}
	a.confirm("confirm?source=letters&action=replay", "deployed").want(303)
	select {}
}
