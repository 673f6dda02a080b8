package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestTimesAreTheViewersAndUTCWhereOnePoints(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"))
	if _, err := b.pool.Exec(t.Context(), `update idem_events set received_at = '2026-11-20 01:30:05Z'; update idem_payloads set received_at = '2026-11-20 01:30:05Z'`); err != nil {
		t.Fatal(err)
	}
	const times = `[...document.querySelectorAll("time")].map(t => t.textContent + " | " + t.title).join("\n")`
	for _, row := range []struct{ zone, language, want, says string }{
		{"America/Sao_Paulo", "pt-BR", "19/11/2026, 22:30:05 | 2026-11-20 01:30:05 UTC", "Os horários são os de America/Sao_Paulo."},
		{"America/Sao_Paulo", "en", "Nov 19, 2026, 22:30:05 | 2026-11-20 01:30:05 UTC", "Times are those of America/Sao_Paulo."},
		{"Asia/Kolkata", "en", "Nov 20, 2026, 07:00:05 | 2026-11-20 01:30:05 UTC", "Times are those of Asia/"},
		{"UTC", "pt-BR", "2026-11-20 01:30:05 UTC | ", ""},
	} {
		b.zone(row.zone)
		b.open(in(row.language, "event?source=letters&id=e1"))
		if got := eval[string](b, times); !strings.Contains(got, row.want) {
			t.Errorf("in %s and %s the times are\n%s\nwant %s", row.zone, row.language, got, row.want)
		}
		b.wantText(row.says)
	}
	b.zone("America/Sao_Paulo")
	b.open("event?source=letters&id=e1")
	b.do(chromedp.Click(`//dd/time[contains(., "22:30:05")]`))
	b.wantText("2026-11-20 01:30:05 UTC")
	eval[int](b, `document.querySelector("main").insertAdjacentHTML("beforeend", '<time datetime="2026-11-20T12:00:00Z">x</time>') || 0`)
	b.wantText("09:00:00") // what comes later, too
}

func TestTheFilterTakesTheViewersTimes(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"), received("e2", "b"))
	const at = ` set received_at = case event when 'letters//e1' then timestamptz '2026-11-20 01:30Z' else '2026-11-20 03:30Z' end`
	if _, err := b.pool.Exec(t.Context(), `update idem_events`+at+`; update idem_payloads`+at); err != nil {
		t.Fatal(err)
	}
	b.zone("America/Sao_Paulo")
	b.open("events?source=letters")
	b.unfold()
	b.do(chromedp.SetValue(chromedp.CSS(`[name=from]`), "2026-11-20T00:00"))
	b.click("button", "Filter")
	listed := `[...document.querySelectorAll("td a")].map(a => a.textContent).join()`
	if got := eval[string](b, listed); got != "e2" {
		t.Errorf("from midnight in São Paulo on there is %q, want e2", got)
	}
	if got := eval[string](b, `location.search + " " + document.querySelector("[name=from]").value`); !strings.Contains(got, "from=2026-11-20T03%3A00%3A00&") || !strings.HasSuffix(got, " 2026-11-20T00:00") {
		t.Errorf("the form sends, and shows then, %s", got)
	}
	b.unfold()
	b.click("button", "Filter") // once more is the same
	if got := eval[string](b, listed); got != "e2" {
		t.Errorf("the form that was sent again finds %q, want e2", got)
	}
}

func TestALongIdIsCopiedAsItIs(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	addresses := b.fill()
	b.open(addresses[1])
	const copied = `(() => { const a = document.querySelector("td a"); getSelection().selectAllChildren(a); return getSelection().toString() + " " + a.querySelectorAll("wbr").length; })()`
	for _, width := range []int64{1200, 320} {
		b.do(chromedp.EmulateViewport(width, 850))
		if got := eval[string](b, copied); got != "evt_6f1c2a90b1d84c3f8e77d0a4f0c9e512&207 2" {
			t.Errorf("at %d pixels one copies %q", width, got)
		}
	}
}

// unfold opens the filter.
func (b *tab) unfold() {
	b.Helper()
	b.do(chromedp.Click(`//summary[contains(., "Filter")]`))
}

func TestTheFilterIsFoldedAndSaysWhatItChooses(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	const seen = `document.querySelector("[name=entity]").checkVisibility({contentVisibilityAuto: true})`
	for _, width := range []int64{390, 1200} {
		b.do(chromedp.EmulateViewport(width, 850))
		b.open("events?source=letters&entity=pay_1&state=failing")
		if b.wantText("Filter: failing, pay_1"); eval[bool](b, seen) {
			t.Errorf("at %d pixels the filter is unfolded", width)
		}
		if b.unfold(); !eval[bool](b, seen) {
			t.Errorf("at %d pixels it cannot be unfolded", width)
		}
	}
}

// Whoever opens the list at night sees events, and not forms.
func TestEventsBeginOnTheFirstScreen(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	addresses := b.fill()
	for _, row := range []struct{ width, height, most int64 }{{1280, 800, 250}, {768, 1024, 300}, {390, 844, 370}} {
		b.do(chromedp.EmulateViewport(row.width, row.height))
		for _, language := range []string{"en", "pt-BR"} {
			b.open(in(language, addresses[1]))
			if top := eval[int64](b, `Math.round(document.querySelector("tbody tr").getBoundingClientRect().top)`); top > row.most {
				t.Errorf("in %s the first row begins at %d of %d pixels, %d wide, want at most %d", language, top, row.height, row.width, row.most)
			} else {
				t.Logf("%s, %d wide: the first row begins at %d of %d pixels", language, row.width, top, row.height)
			}
		}
	}
}

func TestTheActionsAppearOnceSomethingIsChosen(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.accept(received("e1", "a"), received("e2", "b"))
	const row = `(() => { const r = document.querySelector(".chosen"), at = r.getBoundingClientRect(); return r.checkVisibility() && at.height > 0 && at.bottom <= innerHeight; })()`
	for _, size := range [][2]int64{{1280, 800}, {390, 400}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		b.open("events?source=letters")
		for _, box := range []string{`[value='letters//e2']`, `[name=whole]`} {
			if eval[bool](b, row) {
				t.Errorf("at %v the actions are there before anything is chosen", size)
			}
			b.do(chromedp.Click(chromedp.CSS(box)))
			if !eval[bool](b, row) {
				t.Errorf("at %v the actions on %s are not on the screen", size, box)
			}
			b.do(chromedp.Click(chromedp.CSS(box)))
		}
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("events?source=letters&entity=b")
	b.do(chromedp.Click(chromedp.CSS(`[name=whole]`)))
	b.click("button", "Acknowledge…")
	b.wantText("1 event: states", "entities b", "e2")
	b.click("button", "Acknowledge 1 event")
	b.open("event?source=letters&id=e2")
	b.wantText("takes care of it")
	b.click("button", "Take the acknowledgment back…")
	b.click("button", "Take the acknowledgment back 1 event")
	b.wantText("unacknowledge")
}

// An error with a right-to-left override must not turn around the sentence that it stands in.
func TestATextFromOutsideTurnsNoneOfThePagesOwnAround(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	const hostile = "\u202Elive\u202E שלום 1"
	b.accept(idem.Event{ID: "e1" + hostile, Type: "PAYMENT_RECEIVED", Key: "pay" + hostile, Payload: []byte(`{}`)}, idem.Event{ID: "e2", Type: "PAYMENT_RECEIVED", Key: "pay" + hostile, Payload: []byte(`{}`)})
	if _, err := b.pool.Exec(t.Context(), `update idem_events set last_error = $1 where state = 'parked'`, hostile); err != nil {
		t.Fatal(err)
	}
	plan, err := operator.New(b.inbox, "ana"+hostile).PlanAcknowledge(t.Context(), idem.Filter{})
	if err == nil {
		_, err = plan.Do(t.Context(), "because"+hostile)
	}
	if err != nil {
		t.Fatal(err)
	}
	// turned lists the page's own texts whose letters do not stand from left to right, and those that have others' in them.
	const turned = `(() => {
		const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
		const at = (text, n) => { range.setStart(text, n); range.setEnd(text, n + 1); return range.getClientRects()[0]; };
		for (let text; text = texts.nextNode();) {
			const outside = /[\u202E\u0590-\u05FF]/.test(text.data), own = text.parentElement;
			if (!text.data.trim() || !own.checkVisibility()) continue;
			if (outside && !["BDI", "PRE", "TD", "DD", "SMALL", "SPAN"].includes(own.tagName)) found.push("not isolated: " + own.outerHTML);
			for (let n = 1; n < text.length && !outside; n++) {
				const left = at(text, n - 1), right = at(text, n);
				if (left && right && left.top === right.top && right.left < left.left) { found.push("turned around: " + text.data); break; }
			}
		}
		return found;
	})()`
	id := "&id=" + url.QueryEscape("e1"+hostile)
	for _, language := range []string{"en", "pt-BR"} {
		for _, address := range []string{
			"", "events?source=letters", "event?source=letters" + id, "event?source=letters&id=e2", "blocked?source=letters", "trail?source=letters",
			"action?source=letters&id=1", "confirm?source=letters&action=discard" + id, "find?q=" + url.QueryEscape("pay"+hostile), "find?q=no" + url.QueryEscape(hostile),
		} {
			b.open(in(language, address))
			for _, f := range eval[[]string](b, turned) {
				t.Errorf("%s in %s: %s", address, language, f)
			}
		}
	}
	b.open("event?source=letters&id=e2")
	if eval[int](b, `document.querySelector(".why").innerHTML = document.querySelector(".why").textContent, 0`); len(eval[[]string](b, turned)) == 0 {
		t.Error("a sentence that is not isolated is not found: this proves nothing")
	}
}
