package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/paghooks/paghooks/idem"
)

// clock has the test say when the time of a page's timer has come.
const clock = `
	window.timers = [];
	window.setTimeout = (f, ms) => timers.push({f, ms});
	window.clearTimeout = n => { if (n) timers[n - 1] = null; };
	window.waiting = () => timers.filter(Boolean).length;
	window.tick = () => { window.ticked = false; const t = timers.findLast(Boolean); timers.fill(null); t.f().then(() => window.ticked = true); };
	window.hide = hidden => { Object.defineProperty(document, "hidden", {value: hidden, configurable: true}); document.dispatchEvent(new Event("visibilitychange")); };`

func (b *tab) holdClock() {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: clock}); err != nil {
		b.Fatal(err)
	}
}

// tick has the page ask for itself, and waits until it has shown the answer.
func (b *tab) tick() {
	b.Helper()
	if n := eval[int](b, `waiting()`); n != 1 {
		b.Fatalf("%d timers run, want 1", n)
	}
	for eval[bool](b, `(() => { if (window.ticked === undefined || window.ticked) tick(); return true; })()`); !eval[bool](b, `ticked`); {
		if b.ctx.Err() != nil {
			b.Fatal("the page has no answer")
		}
	}
}

func TestListRefreshesItselfAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.holdClock()
	for n := range 30 {
		b.accept(received(fmt.Sprintf("e%02d", n), fmt.Sprint("pay_", n)))
	}
	b.open("events?source=letters")
	const state = `[document.querySelector("[value='letters//e03']")?.checked, document.querySelector("[value='letters//e04']")?.checked, document.activeElement.textContent, Math.round(scrollY)].join(" ")`
	b.do(chromedp.Click(chromedp.CSS(`[value='letters//e03']`)))
	eval[bool](b, `(() => { [...document.querySelectorAll("td a")].find(a => a.textContent == "e05").focus(); scrollTo(0, 321); return true; })()`)
	const kept = "true false e05 321"
	if got := eval[string](b, state); got != kept {
		t.Fatalf("before the page refreshes itself there is %q", got)
	}
	b.accept(received("new", "pay_new"))
	b.tick()
	b.wantText("new\nno such order: pay_new")
	if got := eval[string](b, state); got != kept {
		t.Errorf("after it there is %q, want %q", got, kept)
	}

	// What is chosen is done: the box stays for as long as it is chosen.
	if _, err := b.inbox.Discard(t.Context(), idem.Filter{IDs: []string{"e03"}}, "by others"); err != nil {
		t.Fatal(err)
	}
	b.tick()
	if got := eval[string](b, state); got != kept {
		t.Errorf("after what is chosen was done there is %q, want %q", got, kept)
	}
	b.do(chromedp.Click(chromedp.CSS(`[value='letters//e03']`)))
	b.tick()
	if gone := eval[bool](b, `document.querySelector("[value='letters//e03']") === null`); gone {
		t.Error("what has the focus is gone")
	}
	eval[bool](b, `document.activeElement.blur() === undefined`)
	b.tick()
	if gone := eval[bool](b, `document.querySelector("[value='letters//e03']") === null`); !gone {
		t.Error("what is not chosen any more, and done, is listed")
	}

	// What is typed stays, too.
	b.unfold()
	b.do(chromedp.SendKeys(chromedp.CSS(`main [name=type]`), "PAY"))
	b.accept(received("later", "pay_later"))
	b.tick()
	if typed := eval[string](b, `document.querySelector("main [name=type]").value`); typed != "PAY" {
		t.Errorf("the filter has %q after the page has refreshed itself, want what was typed", typed)
	}
}

func TestNobodyIsAskedWhileTheTabIsHiddenOrTheSessionIsOver(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.holdClock()
	b.accept(received("e1", "a"))
	b.open("events?source=letters")
	eval[bool](b, `hide(true) === undefined`)
	if n := eval[int](b, `waiting()`); n != 0 {
		t.Errorf("%d timers run while the tab is hidden", n)
	}
	eval[bool](b, `hide(false) === undefined`)
	b.accept(received("e2", "b"))
	b.tick()
	b.wantText("no such order: b")

	const note = `document.getElementById("live").checkVisibility()`
	if eval[bool](b, note) {
		t.Error("the page says that the session is over")
	}
	b.ended.Store(true)
	b.tick()
	if n := eval[int](b, `waiting()`); n != 0 || !eval[bool](b, note) {
		t.Errorf("%d timers run after the session is over", n)
	}
	b.wantText("This page is not refreshed any more", "no such order: b")
	before := b.asked.Load()
	eval[bool](b, `hide(true) === undefined && hide(false) === undefined`)
	if n := eval[int](b, `waiting()`); n != 0 || b.asked.Load() != before {
		t.Errorf("%d timers run, and %d requests were made, after the session was over", n, b.asked.Load()-before)
	}
}

// A page that is not refreshed looks like one on which nothing happens.
func TestPageSaysThatItIsOldAndEndsAtALogin(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.holdClock()
	b.accept(received("e1", "a"))
	b.open("events?source=letters")
	notes := func() string {
		return eval[string](b, `["old", "live"].filter(id => document.getElementById(id).checkVisibility()).join(" ")`)
	}
	for _, step := range []struct {
		status int64
		notes  string
		timers int
	}{
		{0, "", 1},
		{http.StatusServiceUnavailable, "old", 1},
		{http.StatusBadGateway, "old", 1},
		{0, "", 1},
		{http.StatusInternalServerError, "old", 1},
		{http.StatusSeeOther, "live", 0},
	} {
		b.answers.Store(step.status)
		b.tick()
		if got, n := notes(), eval[int](b, `waiting()`); got != step.notes || n != step.timers {
			t.Errorf("after %d it says %q, and %d timers run, want %q and %d", step.status, got, n, step.notes, step.timers)
		}
		b.wantText("no such order: a")
	}
}

func TestRunningActionIsStoppedAndTheRestDoneByMouse(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"), received("e2", "b"), received("e3", "c"))
	b.broken.Store(false)
	b.open("events?source=letters")
	b.click("a", "All on this page")
	b.do(chromedp.Click(chromedp.CSS(`[value='letters//e3']`)))
	b.hold.Lock()
	b.click("button", "Replay…")
	b.wantText("Replay 2 events")
	b.click("button", "Replay 2 events")
	b.awaitText("it is running")
	b.click("a", "replay")
	b.wantText("e1\tnot reached", "e2\tnot reached")
	b.write("reason", "a test")
	b.click("button", "Stop")
	b.wantText("it ends: ana@shop.example has stopped it")
	b.hold.Unlock()
	b.awaitText("choose those events again")
	b.wantState("e2", idem.StateParked)
	b.click("a", "Back to the events")
	b.click("a", "All on this page")
	b.do(chromedp.Click(chromedp.CSS(`[value='letters//e3']`)))
	b.click("button", "Replay…")
	b.wantText("Replay 1 event")
	b.click("button", "Replay 1 event")
	b.wantText("1 done, 0 failed", "stopped by ana@shop.example")
	b.wantState("e2", idem.StateDone)
	b.wantState("e3", idem.StateParked)
}
