package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/console"
	"github.com/paghooks/paghooks/idem/gauge"
	"github.com/paghooks/paghooks/idem/operator"
)

func TestWithoutAccessEveryRequestIsForbidden(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	nobody := func(*http.Request) (string, console.Access) {
		return "ana", console.Access{Reveal: true, Act: true} // but not See
	}
	for name, access := range map[string]func(*http.Request) (string, console.Access){"nil": nil, "nothing to see": nobody} {
		a.page.Access = access
		for page := range console.Pages() {
			for _, r := range []answer{a.get(page + "?source=letters&id=e1&action=replay"), a.post(page, url.Values{"source": {"letters"}, "id": {"e1"}, "action": {"replay"}})} {
				if r.want(http.StatusForbidden); strings.Contains(r.body, "letters") || strings.Contains(r.body, "<") {
					t.Errorf("%s: %s shows %s", name, page, r.body)
				}
			}
		}
		a.get("no-such-page").want(http.StatusForbidden)
	}
	a.wantState("letters", "e1", idem.StateParked)
}

func TestWhoMayOnlySeeCanNeitherActNorReveal(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.fix()
	a.page.Queues = map[string]gauge.Queues{"letters": &queues{all: []gauge.Queue{{ID: "q1", Enabled: true, Interrupted: true}}}}
	one := url.Values{"source": {"letters"}, "id": {"e1"}, "account": {""}, "one": {"1"}, "count": {"1"}, "reason": {"x"}, "queue": {"q1"}, "whole": {"1"}}
	for name, row := range map[string]struct {
		user   string
		access console.Access
		may    string // what that is
	}{
		"see":                    {"bob", console.Access{See: true}, ""},
		"reveal":                 {"bob", console.Access{See: true, Reveal: true}, "reveal"},
		"act":                    {"bob", console.Access{See: true, Act: true}, "act"},
		"all but without a name": {"", console.Access{See: true, Reveal: true, Act: true}, ""},
	} {
		a.page.Access = func(*http.Request) (string, console.Access) { return row.user, row.access }
		event := a.get("event?source=letters&id=e1")
		event.want(200)
		if got := strings.Contains(event.body, `action="confirm"`); got != (row.may == "act") {
			t.Errorf("%s: the event has actions: %t", name, got)
		}
		if got := strings.Contains(event.body, `action="reveal"`); got != (row.may == "reveal") {
			t.Errorf("%s: the event offers its body: %t", name, got)
		}
		if got := strings.Contains(a.get("queues").body, `action="release"`); got != (row.may == "act") {
			t.Errorf("%s: the queue can be released: %t", name, got)
		}
		if row.may != "reveal" {
			a.post("reveal", one).want(http.StatusForbidden)
		}
		if row.may != "act" {
			for _, action := range []string{"replay", "dry-run", "requeue", "discard"} {
				one.Set("action", action)
				a.post("act", one).want(http.StatusForbidden)
				a.get("confirm?" + one.Encode()).want(http.StatusForbidden)
			}
			for _, page := range []string{"release", "stop", "choose"} {
				a.post(page, one).want(http.StatusForbidden)
			}
			one.Set("action", "erase")
			a.post("act", one).want(http.StatusForbidden)
		}
	}
	a.wantState("letters", "e1", idem.StateParked)
	if actions, err := operator.New(a.inbox, "").Actions(t.Context(), 0, 10); len(actions) != 0 || err != nil {
		t.Errorf("the trail has %v, %v, want nothing", actions, err)
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	form := url.Values{"source": {"letters"}, "id": {"e1"}, "one": {"1"}, "count": {"1"}, "reason": {"x"}, "action": {"discard"}}.Encode()
	for _, row := range []struct{ header, value, why string }{
		{"Sec-Fetch-Site", "cross-site", "a form of another site"},
		{"Sec-Fetch-Site", "same-site", "a form of another host of the site"},
		{"Origin", "https://evil.example", "a browser that does not say Sec-Fetch-Site"},
		{"Origin", "null", "a sandboxed frame"},
	} {
		for page, method := range console.Pages() {
			if method != http.MethodPost {
				continue
			}
			r := httptest.NewRequest(http.MethodPost, "/"+page, strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set(row.header, row.value)
			if got := a.do(r); got.status != http.StatusForbidden {
				t.Errorf("%s to %s is answered %d, want 403", row.why, page, got.status)
			}
		}
	}
	a.wantState("letters", "e1", idem.StateParked)
}
