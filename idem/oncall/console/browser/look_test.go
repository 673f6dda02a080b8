package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
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
	b.do(chromedp.SetValue(chromedp.CSS(`[name=from]`), "2026-11-20T00:00"))
	b.click("button", "Filter")
	listed := `[...document.querySelectorAll("td a")].map(a => a.textContent).join()`
	if got := eval[string](b, listed); got != "e2" {
		t.Errorf("from midnight in São Paulo on there is %q, want e2", got)
	}
	if got := eval[string](b, `location.search + " " + document.querySelector("[name=from]").value`); !strings.Contains(got, "from=2026-11-20T03%3A00%3A00&") || !strings.HasSuffix(got, " 2026-11-20T00:00") {
		t.Errorf("the form sends, and shows then, %s", got)
	}
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

func TestTheFilterFoldsOnAPhoneAndIsOpenOnADesktop(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	const seen = `document.querySelector("[name=entity]").checkVisibility({contentVisibilityAuto: true}) + " " + document.querySelector("summary").checkVisibility()`
	for width, want := range map[int64]string{390: "false true", 1200: "true false"} {
		b.do(chromedp.EmulateViewport(width, 850))
		b.open("events?source=letters&entity=a&state=parked")
		if got := eval[string](b, seen); got != want {
			t.Errorf("at %d pixels the field and what unfolds it are visible: %s, want %s", width, got, want)
		}
	}
	b.do(chromedp.EmulateViewport(390, 850))
	b.do(chromedp.Click(`//summary[contains(., "Filter (2)")]`))
	if got := eval[string](b, seen); got != "true true" {
		t.Errorf("unfolded they are %s", got)
	}
}
