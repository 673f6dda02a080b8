package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paghooks/paghooks/idem"
)

func TestEveryActionByMouse(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"), received("e2", "b"), received("e3", "c"), received("e4", "d"), received("e5", "e"))
	b.openCounted()
	b.wantText("5\nparked", "The provider has stopped its queue payments: nothing is delivered.", "stopped: nothing is delivered", "13 d 5 h")

	b.click("a", "5 parked")
	b.click("a", "e1")
	b.wantText("no such order: a", "Bodies hold personal data")
	b.click("button", "Show with values masked")
	b.wantText(`"cpfCnpj": "•••"`)
	b.click("button", "Show all of it")
	b.wantText(`"cpfCnpj": "123.456.789-09"`, `"value": 129.90`)
	b.click("button", "Dry run…")
	b.click("button", "Dry run 1 event")
	b.wantText("0 done, 1 failed", "first failure: PAYMENT_RECEIVED e1", "shown masked", "shown whole")
	b.wantState("e1", idem.StateParked)

	b.broken.Store(false)
	b.open("event?source=letters&id=e1")
	b.click("button", "Replay…")
	b.write("reason", "handler deployed")
	b.click("button", "Replay 1 event")
	b.wantText("handler deployed", "1 done, 0 failed")
	b.wantState("e1", idem.StateDone)

	b.open("event?source=letters&id=e2")
	b.click("button", "Requeue…")
	if _, err := b.pool.Exec(t.Context(), `insert into idem_workers values (1, 'letters', 'shop-1', 7, now(), now())`); err != nil { // alive for a moment
		t.Fatal(err)
	}
	b.click("button", "Requeue 1 event")
	b.wantText("1 requeued")
	b.wantState("e2", idem.StatePending)

	b.open("event?source=letters&id=e3")
	b.click("button", "Discard…")
	b.do(chromedp.Click(`//button[contains(., "Discard 1 event")]`)) // the browser asks for the reason
	b.wantState("e3", idem.StateParked)
	b.write("reason", "a test")
	b.click("button", "Discard 1 event")
	b.wantText("1 discarded", "a test")
	b.wantState("e3", idem.StateDiscarded)

	b.click("a", "Events")
	b.unfold()
	b.do(chromedp.SetValue(chromedp.CSS(`select[name=state]`), "parked"))
	b.click("button", "Filter")
	b.do(chromedp.Click(chromedp.CSS(`[name=whole]`)))
	b.click("button", "Replay…")
	b.wantText("2 events: states parked", "e4", "e5")
	b.click("button", "Replay 2 events")
	b.wantText("2 done, 0 failed")
	b.click("a", "replay")
	b.wantText("2 events", "e4", "e5")

	b.open("")
	b.awaitText("Probe, then resume")
	b.click("button", "Probe, then resume")
	b.wantText("the probe passed, the queue was resumed")
	b.open("")
	b.awaitText("delivers")
}

// focused says what has the focus, and whether one sees that.
const focused = `(() => {
	const e = document.activeElement, style = getComputedStyle(e);
	return {text: e.name && e.tagName != "BUTTON" ? e.name : e.textContent.trim(), visible: style.outlineStyle != "none" && parseFloat(style.outlineWidth) >= 2};
})()`

type focus struct {
	Text    string `json:"text"`
	Visible bool   `json:"visible"`
}

// tabTo presses the tab key until something has the focus.
func (b *tab) tabTo(text string) {
	b.Helper()
	for range 80 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := eval[focus](b, focused)
		if at.Text != "" && !at.Visible {
			b.Errorf("one does not see that %q has the focus", at.Text)
		}
		if strings.HasPrefix(at.Text, text) {
			return
		}
	}
	b.Fatalf("the tab key does not lead to %q", text)
}

// enter presses a key that leads to another page.
func (b *tab) enter() {
	b.Helper()
	if response, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter)); err != nil || response.Status != 200 {
		b.Fatalf("the enter key leads to %+v, %v", response, err)
	}
}

func TestEverythingByKeyboard(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"), received("e2", "b"))
	b.broken.Store(false)
	b.open("")
	b.do(chromedp.KeyEvent(kb.Tab))
	if at := eval[focus](b, focused); at.Text != "Skip to content" || !at.Visible {
		t.Errorf("the tab key leads to %+v first, want the link to the content", at)
	}
	b.tabTo("Events")
	b.enter()
	b.tabTo("Filter")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.tabTo("id")
	b.do(chromedp.KeyEvent("e1"))
	b.enter()
	b.tabTo("e1")
	b.enter()
	b.tabTo("Show with")
	b.enter()
	b.wantText("Shown masked")
	b.tabTo("Replay…")
	b.enter()
	b.tabTo("reason")
	b.do(chromedp.KeyEvent("fixed"))
	b.tabTo("Replay 1 event")
	b.enter()
	b.wantText("fixed", "1 done, 0 failed")
	b.wantState("e1", idem.StateDone)
	b.tabTo("Overview")
	b.enter()
	b.tabTo("Probe, then resume")
	b.enter()
	b.wantText("the queue was resumed")
}

// A person knows the payment, and wants to know why it is stuck.
func TestFindLeadsFromAPaymentToTheEventThatHoldsIt(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "pay_1"), received("e2", "pay_1"), received("e3", "pay_2"))
	b.open("")
	b.do(chromedp.SendKeys(chromedp.CSS("header [name=q]"), "pay_1"))
	b.enter()
	b.wantText("e1: It is parked: it has failed once, last with: no such order: pay_1", "1 event of its entity waits for it.")
	b.click("a", "e2")
	b.wantText("It waits for e1, an earlier PAYMENT_RECEIVED of its entity, which is parked")
	b.click("a", "e1")
	b.wantText("Last attempts", "Replay…")
}

// faint lists the texts whose contrast is below 4.5, as WCAG 2 counts it.
const faint = `(() => {
	const rgb = c => c.match(/[\d.]+/g).map(Number);
	const light = c => { const [r, g, b] = rgb(c).slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; const v = rgb(c); if (v.length < 4 || v[3] > 0) return c; } return "rgb(255,255,255)"; };
	const found = []; let n = 0;
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some(c => c.nodeType == 3 && c.textContent.trim()) || e.matches("input, select");
		if (!own || !e.checkVisibility()) continue;
		n++;
		const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x), contrast = (a + .05) / (b + .05);
		if (contrast < 4.5) found.push(e.tagName + " " + e.textContent.trim().slice(0, 40) + ": " + contrast.toFixed(2));
	}
	if (n < 5) found.push("only " + n + " texts");
	return found;
})()`

func TestBothThemesHaveEnoughContrast(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	grounds := map[string]string{}
	for _, address := range b.fill() {
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			b.open(address)
			for _, text := range eval[[]string](b, faint) {
				t.Errorf("%q in %s: %s", address, theme, text)
			}
			grounds[theme] = eval[string](b, `getComputedStyle(document.body).backgroundColor`)
		}
	}
	if grounds["light"] == grounds["dark"] {
		t.Errorf("both themes are %s", grounds["light"])
	}
}

func TestNoScreenNeedsScrollingToTheSide(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	long := strings.Repeat("x", 200)
	addresses := b.fill()
	check := func(width int64, address string) {
		t.Helper()
		b.open(address)
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("%.40q is %d pixels wide, want %d: %s", address, wide, width, eval[string](b, fmt.Sprintf(
				`[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > %d).map(e => e.tagName + "." + e.className + " " + e.textContent.slice(0, 30)).slice(0, 5).join(" ")`, width+1)))
		}
	}
	for _, width := range []int64{320, 721, 1121, 1280} {
		b.do(chromedp.EmulateViewport(width, 640))
		for _, address := range addresses {
			check(width, address)
			check(width, in("pt-BR", address))
		}
	}
	b.accept(idem.Event{Scope: long, ID: long, Type: long, Key: long, Payload: []byte(`{"` + long + `":1}`)})
	if _, err := b.pool.Exec(t.Context(), `update idem_events set last_error = $1`, long); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{320, 1121} {
		b.do(chromedp.EmulateViewport(width, 640))
		for _, address := range append(addresses, "event?account="+long+"&id="+long, "confirm?action=replay&id="+long) {
			check(width, address)
		}
	}
}

func TestHostileTextsDoNothing(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	const hostile = `"'></pre><script>window.hacked=1</script><img src=x onerror="window.hacked=1"><svg onload=window.hacked=1>`
	b.accept(idem.Event{Scope: hostile, ID: hostile, Type: hostile, Key: hostile, Payload: []byte(hostile)})
	if _, err := b.pool.Exec(t.Context(), `update idem_events set last_error = $1, state = 'parked'`, hostile); err != nil {
		t.Fatal(err)
	}
	check := func(where string) {
		t.Helper()
		b.wantText(hostile)
		if made := eval[int](b, `document.querySelectorAll("script:not([src='live.js'][nonce], [src='times.js'][nonce]), img, svg").length + (window.hacked || 0)`); made != 0 {
			t.Errorf("%s has elements of the text: %d", where, made)
		}
	}
	b.openCounted()
	b.click("a", "1 parked")
	check("the list")
	if response, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.CSS("td a"))); err != nil || response.Status != 200 {
		t.Fatalf("the link to the event leads to %+v, %v", response, err)
	}
	check("the event")
	b.click("button", "Show all of it")
	check("the body")
	b.click("button", "Discard…")
	b.write("reason", hostile)
	check("the question")
	b.click("button", "Discard 1 event")
	check("the trail")
	b.click("a", "discard")
	check("the action")
}

func TestFormAndFrameOfAnotherSiteAreRefused(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"))
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><form method="post" action="%sact"><input name="source" value="letters"><input name="action" value="discard">
			<input name="id" value="e1"><input name="count" value="1"><input name="reason" value="x"><button>Win</button></form><iframe src=%q></iframe>`, b.url, b.url)
	}))
	t.Cleanup(evil.Close)
	b.do(chromedp.Navigate(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)))
	if inside := eval[bool](b, `frames[0].length == 0 && (() => { try { return frames[0].document.body.innerText.includes("Overview") } catch { return false } })()`); inside {
		t.Error("the page is shown in a frame")
	}
	response, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.CSS("button")))
	if err != nil || response.Status != http.StatusForbidden {
		t.Errorf("the form is answered %+v, %v, want 403", response, err)
	}
	b.wantText("This form is not from this page")
	b.wantState("e1", idem.StateParked)
}

func TestALongReplayIsShownWhileItRuns(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"), received("e2", "b"))
	b.broken.Store(false)
	b.hold.Lock()
	b.open("confirm?source=letters&action=replay&state=parked")
	b.click("button", "Replay 2 events")
	b.awaitText("running")
	b.hold.Unlock()
	b.awaitText("2 done")
}

// BenchmarkPagesOf100000Events tells how long a browser waits for a page of so many
// events that are not done.
func BenchmarkPagesOf100000Events(b *testing.B) {
	tab := newTab(b)
	_, err := tab.pool.Exec(b.Context(), `insert into idem_events (event, type, key, state, last_error, received_at)
		select 'letters//evt_' || md5(n::text), 'PAYMENT_RECEIVED', 'pay_' || n / 3, case when n % 10 = 0 then 'parked' else 'pending' end, case when n % 10 = 0 then 'no such order' end, now() - n * interval '1 s'
		from generate_series(1, 100000) n;
		insert into idem_payloads (event, source, lane, due_at, received_at, body)
		select event, 'letters', 'letters//' || key, case when state = 'pending' then received_at end, received_at, convert_to('{"a":"' || repeat('x', 700) || '"}', 'UTF8') from idem_events;
		analyze idem_events; analyze idem_payloads`)
	if err != nil {
		b.Fatal(err)
	}
	for _, page := range []struct{ name, address string }{
		{"overview", ""},
		{"events", "events?source=letters"},
		{"some of the events", "events?source=letters&state=parked&type=PAYMENT_RECEIVED"},
		{"question about 10000", "confirm?source=letters&action=replay&state=parked"},
		{"blocked", "blocked?source=letters"},
	} {
		b.Run(page.name, func(b *testing.B) {
			for b.Loop() {
				tab.open(page.address)
			}
		})
	}
}
