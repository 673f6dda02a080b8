package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestEveryPageShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	a := openApp(t, openAsRole(t))
	a.letters("e1")
	a.accept(a.inbox.Accept, idem.Event{ID: "e2", Type: "paid", Key: "order-e1", Payload: body("e2")}) // waits for e1
	a.accept(a.first.Accept, idem.Event{ID: "n1", Type: "new", Payload: body("n1")})
	a.fix()
	a.accept(a.first.Accept, idem.Event{ID: "n2", Type: "paid", Payload: body("n2")})

	a.get("").want(200, "letters", "1 parked", "1 pending", "notes", "1 unhandled", "1 blocked")
	a.get("events?source=letters").want(200, "e1", "no such order", "e2")
	a.get("events?source=letters&state=pending").without("<bdi>e1</bdi>")
	a.get("events?source=notes").want(200, "n1 unhandled new")
	a.get("events?source=notes&id=n2").want(200, "No event. Those that are done are found by their id, or by their entity.")
	a.get("event?source=letters&id=e1").want(200, "Id e1", "State parked", "Failed attempts 1", "no such order: order-e1")
	a.get("event?source=notes&id=n2").want(200, "State done", "It is not stored")
	a.get("entity?source=letters&entity=order-e1").want(200, "e1", "e2")
	a.get("blocked?source=letters").want(200, "order-e1", "e1 paid", "none")
	a.get("blocked?source=notes").want(200, "No entity is blocked")
	a.get("trail?source=letters").want(200, "Nobody has done anything")
	a.get("confirm?source=letters&action=replay").want(200, "2 events", "e1", "e2")
	a.get("style.css").want(200)
	for address, status := range map[string]int{
		"nothing": 404, "event?source=letters&id=unknown": 404, "events?source=unknown": 404, "action?source=letters&id=9": 404,
		"events?state=done": 400, "events?from=yesterday": 400, "events?at=x": 400, "trail?before=x": 400, "events?type=%00": 400,
		"events?type=%ff": 400, "confirm?action=explode": 400, "act": 405,
	} {
		a.get(address).want(status)
	}
}

// One that works first and one that answers first, for example.
func TestTwoReceiversOfOneSourceAreShownOnce(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	page := console.New(a.inbox, idem.NewInbox(a.pool, testkit.NewSource("letters")))
	t.Cleanup(page.Close)
	page.Access, a.handler = a.page.Access, page
	page.WaitForAll()
	if p := a.get(""); strings.Count(p.body, "<h2") != 1 {
		t.Errorf("the source is shown more than once:\n%s", p.body)
	}
}

func TestFilterNarrowsTheListAndTheActions(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1", "e2")
	a.accept(a.inbox.Accept, idem.Event{Scope: "shop/1", ID: "e3", Type: "sent", Key: "k", Payload: body("e3")})
	for query, want := range map[string]string{
		"id=e1": "e1", "type=sent": "e3", "entity=order-e2": "e2", "account=shop%2f1": "e3", "state=parked&id=e2": "e2",
		"from=2020-01-01T00:00&type=sent": "e3", "until=2099-01-01T00:00:30&id=+e1+": "e1", "one=1&account=&id=e2": "e2",
	} {
		for _, page := range []string{"events?source=letters&", "confirm?source=letters&action=discard&"} {
			got := a.get(page + query)
			got.want(200, want)
			for _, other := range []string{"e1", "e2", "e3"} {
				if other != want {
					got.without("<bdi>" + other + "</bdi>")
				}
			}
		}
	}
	a.get("events?source=letters&from=2099-01-01T00:00").want(200, "No event")
	a.inbox.MaxAttempts = 5
	a.letters("e4")
	for _, page := range []string{"events?source=letters&state=failing", "confirm?source=letters&state=failing&action=discard"} {
		failing := a.get(page)
		failing.want(200, "e4", "failing")
		failing.without("<bdi>e1</bdi>", "<bdi>e2</bdi>", "<bdi>e3</bdi>")
	}
	a.get("confirm?source=letters&action=replay&one=1&id=").want(200, "0 events", "there is nothing to do")
}

func TestPagesByKeyShowEachOf250EventsOnce(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	_, err := a.pool.Exec(t.Context(), `insert into idem_events (event, type, key, state, received_at)
		select 'letters//e' || n || '_', 'paid', '', 'unhandled', now() - n / 10 * interval '1 s' from generate_series(1, 250) n;
		insert into idem_payloads (event, source, received_at, body) select event, 'letters', received_at, '{}' from idem_events`)
	if err != nil {
		t.Fatal(err)
	}
	seen, address := map[string]bool{}, "events?source=letters&type=paid"
	for pages := 1; ; pages++ {
		p := a.get(address)
		p.want(200)
		address = ""
		for _, link := range p.links() {
			if id, ok := strings.CutPrefix(link, "event?"); ok {
				if seen[id] {
					t.Fatalf("%s is listed twice", id)
				}
				seen[id] = true
			}
			if strings.HasPrefix(link, "events?") && strings.Contains(link, "before=") {
				address = link
			}
		}
		if address == "" {
			break
		}
		if pages > 6 {
			t.Fatal("the pages do not end")
		}
	}
	if len(seen) != 250 {
		t.Errorf("%d events are listed, want 250", len(seen))
	}
}

// Each page is asked for below a prefix, as mounted and as stripped, and each of
// its links leads below that.
func TestLinksAreRelativeBelowAnyPrefix(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.page.Queues = map[string]gauge.Queues{"letters": &queues{}}
	for prefix, handler := range map[string]http.Handler{
		"/": a.page, "/a/b/": a.page, "/stripped/": http.StripPrefix("/stripped", a.page),
	} {
		a.handler, a.prefix = handler, prefix
		seen, next := map[string]bool{}, []string{prefix}
		for len(next) > 0 {
			address := next[0]
			next = next[1:]
			if seen[address] {
				continue
			}
			seen[address] = true
			p := a.do(httptest.NewRequest(http.MethodGet, address, nil))
			if name, _, _ := strings.Cut(strings.TrimPrefix(address, prefix), "?"); console.Pages()[name] == http.MethodPost {
				p.want(405)
				continue
			}
			if !strings.Contains(address, "/confirm") || strings.Contains(address, "action=") { // without its fields
				p.want(200)
			}
			base, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			for _, link := range p.links() {
				to, err := url.Parse(link)
				if err != nil || to.Scheme != "" || to.Host != "" || strings.HasPrefix(to.Path, "/") {
					t.Errorf("%s has the link %q, %v, want a relative one", address, link, err)
					continue
				}
				to = base.ResolveReference(to)
				to.Fragment = ""
				next = append(next, to.String())
			}
		}
		if len(seen) < 10 {
			t.Errorf("below %s there are only %d pages: %v", prefix, len(seen), seen)
		}
	}
	a.handler = http.StripPrefix("/ops", a.page)
	p := a.do(httptest.NewRequest(http.MethodGet, "/ops?x=1", nil))
	if p.want(303); p.header.Get("Location") != "ops/" {
		t.Errorf("/ops leads to %q, want to ops/, whose links are below it", p.header.Get("Location"))
	}
}

func TestEveryAnswerHasTheHeadersThatProtectIt(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	nonces, live := map[string]bool{}, 0
	check := func(name string, r answer) {
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"Referrer-Policy":         "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		} {
			if nonce := own.FindStringSubmatch(r.body); nonce != nil && header == "Content-Security-Policy" {
				want += "; script-src 'nonce-" + nonce[1] + "'"
				if strings.Contains(r.body, `src="live.js" nonce="`+nonce[1]) {
					live++
					want += "; connect-src 'self'"
				}
				if nonces[nonce[1]] {
					t.Errorf("%s has the nonce of another answer", name)
				}
				nonces[nonce[1]] = true
			}
			if got := r.header.Values(header); len(got) != 1 || got[0] != want {
				t.Errorf("%s has %s: %q, want %q", name, header, got, want)
			}
		}
	}
	for _, access := range []console.Access{{}, {See: true}, {See: true, Reveal: true, Act: true}} {
		a.page.Access = func(*http.Request) (string, console.Access) { return "ana", access }
		for name := range console.Pages() {
			check(name, a.get(name))
			check(name, a.post(name, nil))
		}
		check("nothing", a.get("nothing"))
	}
	if live < 7 {
		t.Errorf("%d answers have a script: this proves nothing of others", live)
	}
	if got := a.get("live.js").header.Get("Content-Type"); !strings.HasPrefix(got, "text/javascript") {
		t.Errorf("the script is sent as %s", got)
	}
	if got := a.get("style.css").header.Get("Content-Type"); !strings.HasPrefix(got, "text/css") {
		t.Errorf("the style sheet is sent as %s", got)
	}
}

func TestHostileTextsAreShownAsText(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}javascript:alert(1)`
	a.page.Access = func(*http.Request) (string, console.Access) {
		return hostile, console.Access{See: true, Reveal: true, Act: true}
	}
	a.page.Queues = map[string]gauge.Queues{"letters": &queues{all: []gauge.Queue{{ID: hostile, Name: hostile, URL: "javascript:alert(1)" + hostile, Enabled: true, Penalized: 2}}, says: hostile}}
	payload := `{"ID":"` + strings.ReplaceAll(hostile, `"`, `\"`) + `","Order":"</pre><script>x"}`
	for _, id := range []string{hostile, "1"} {
		a.accept(a.inbox.Accept, idem.Event{Scope: hostile, ID: id, Type: "paid", Key: hostile, Payload: []byte(payload)})
	}
	if _, err := a.pool.Exec(t.Context(), `update idem_events set conflict_at = now(), last_error = $1, type = $1, state = case when event like '%/1' then 'pending' else 'parked' end`, hostile); err != nil {
		t.Fatal(err)
	}
	if _, err := a.pool.Exec(t.Context(), `update idem_payloads set due_at = null, trace = $1, failures = jsonb_build_array(jsonb_build_object('at', now(), 'error', $1::text))`, hostile); err != nil {
		t.Fatal(err)
	}
	named := url.Values{"source": {"letters"}, "account": {hostile}, "id": {hostile}, "entity": {hostile}, "type": {hostile}, "one": {"1"}}.Encode()
	one := url.Values{"source": {"letters"}, "account": {hostile}, "id": {hostile}}
	wholeOne := url.Values{"source": {"letters"}, "account": {hostile}, "id": {hostile}, "whole": {"1"}, "reason": {hostile}}
	a.post("release", url.Values{"source": {"letters"}, "queue": {hostile}, "reason": {hostile}}).want(303)
	shows := 0
	for name, p := range map[string]answer{
		"overview": a.get(""), "events": a.get("events?" + named), "all": a.get("events"), "event": a.get("event?" + named), "entity": a.get("entity?" + named),
		"find": a.get("find?" + url.Values{"q": {hostile}}.Encode()), "conflicts": a.get("conflicts"), "blocked": a.get("blocked"), "masked": a.post("reveal", one), "whole": a.post("reveal", wholeOne),
		"confirm": a.get("confirm?action=discard&" + named), "trail": a.get("trail"), "action": a.get("action?id=1"),
	} {
		p.want(200)
		p.without("<script>", "<img", `"javascript:`, "onerror=alert(1)>")
		if strings.Contains(p.text(), "alert(1)</script>") {
			shows++
		} else {
			t.Errorf("%s does not show the text as it is:\n%s", name, p.body)
		}
	}
	if shows == 0 {
		t.Error("no page shows the texts: this proves nothing")
	}
}

func TestBodiesAreHiddenUntilRevealedAndMaskedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	a := openApp(t, openAsRole(t))
	a.letters("e1")
	const secret = "123.456.789-09"
	a.get("event?source=letters&id=e1").without(secret, "cpf")
	form := url.Values{"source": {"letters"}, "id": {"e1"}, "reason": {"ticket 7"}}
	masked := a.post("reveal", form)
	masked.want(200, `"cpf": "•••"`, `"value": •••`)
	masked.without(secret, "129.90")
	form.Set("whole", "1")
	a.post("reveal", form).want(200, `"cpf": "`+secret+`"`, `"value": 129.90`)
	trail := a.get("trail?source=letters")
	trail.want(200, "ana reveal id e1 ticket 7 0 shown masked", "ana reveal id e1 ticket 7 0 shown whole")
}

func TestMaskShowsNamesOnly(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ body, want, why string }{
		{`{"a":"x","b":[1,true,null,"y"],"c":{},"d":-1.5e3}`, "{\n  \"a\": \"•••\",\n  \"b\": [\n    •••,\n    true,\n    null,\n    \"•••\"\n  ],\n  \"c\": {},\n  \"d\": •••\n}", "texts and numbers are masked"},
		{`{"a\": \"b":"x\": \"y, z\\","c":"","d":"line\nfeed"}`, "{\n  \"a\\\": \\\"b\": \"•••\",\n  \"c\": \"•••\",\n  \"d\": \"•••\"\n}", "names and texts may look like JSON"},
		{`"x"`, `"•••"`, "a body may be a text"},
		{` 12 `, `•••`, "or a number"},
		{`a=1`, "not JSON, or too deep, 3 bytes", "nothing of another format is shown"},
		{`{"a":1} {"b"`, "not JSON, or too deep, 12 bytes", "nor of what follows"},
		{``, "not JSON, or too deep, 0 bytes", "nor of an empty one"},
		{strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "not JSON, or too deep, 10000 bytes", "nor of one that would be a hundred times as long"},
		{`["` + strings.Repeat("]", 5000) + `",` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `]`, "not JSON, or too deep, 15005 bytes", "whatever its texts have"},
		{`["` + strings.Repeat("[", 51) + `\"["]`, "[\n  \"•••\"\n]", "brackets in texts are not deep"},
	} {
		if got := console.Masked([]byte(row.body)); got != row.want {
			t.Errorf("Mask(%.40s) = %s, want %s: %s", row.body, got, row.want, row.why)
		}
	}
}

func FuzzMaskShowsNoValue(f *testing.F) {
	for _, seed := range []string{
		`{"a":"x","b":[1,true,null,"y\"",{"c\\":-1.5e3}],"c":{},"d":[],"":""}`, `"x"`, `1`, `[["[",1],"]: {,"]`, "{\"a\xff\":\"b\xff\"}", `{"k": "\": 5,\n"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		shown := console.Masked(body)
		if strings.HasPrefix(shown, "not JSON, or too deep") {
			return
		}
		var v any
		// Where a number was, three dots stand that no text has around them.
		quoted := strings.ReplaceAll(strings.ReplaceAll(shown, `"•••"`, `•••`), `•••`, `"•••"`)
		if strings.Contains(string(body), "•") {
			return
		}
		if err := json.Unmarshal([]byte(quoted), &v); err != nil {
			t.Fatalf("of %q it shows %q: %v", body, shown, err)
		}
		wantMasked(t, v)
	})
}

func wantMasked(t *testing.T, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			wantMasked(t, e)
		}
	case []any:
		for _, e := range v {
			wantMasked(t, e)
		}
	case string:
		if v != "•••" {
			t.Errorf("it shows the text %q", v)
		}
	case float64:
		t.Errorf("it shows the number %v", v)
	}
}
