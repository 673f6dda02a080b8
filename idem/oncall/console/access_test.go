package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/testkit"
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
		if got := strings.Contains(a.get("").body, `action="release"`); got != (row.may == "act") {
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
			for _, page := range []string{"release", "enable", "stop", "choose"} {
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

// A replica, such as the former primary after a failover, answers reads.
func TestAnActionWherePostgresTakesNoWritesSaysSo(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	writing := openPool(t, url, "")
	if err := idem.Migrate(t.Context(), writing); err != nil {
		t.Fatal(err)
	}
	openApp(t, writing).letters("e1")
	config := writing.Config()
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a := openApp(t, pool)
	a.get("").want(200, "1 parked")
	form := a.get("confirm?source=letters&action=replay").form("act")
	const says = "Postgres takes no writes: it is a replica"
	a.post("act", form).want(503, says)
	a.post("reveal", map[string][]string{"source": {"letters"}, "id": {"e1"}}).want(503, says)
	a.get("event?source=letters&id=e1").want(200, "State parked")
}

// openAsRole returns a pool on tables of its own, for a role that may read and write them and, as since Postgres 15 an
// ordinary one, create none.
func openAsRole(t *testing.T) *pgxpool.Pool {
	t.Helper()
	url := idemtest.URL(t)
	owner := openPool(t, url, "")
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	schema := testkit.QueryOne[string](t, owner, `select current_schema()`)
	role := schema + "_app"
	testkit.Exec(t, owner, `create role `+role+`; grant usage on schema `+schema+` to `+role+`;
		grant select, insert, update, delete on all tables in schema `+schema+` to `+role)
	t.Cleanup(func() { testkit.Exec(t, owner, `drop owned by `+role+`; drop role `+role) })
	pool := openPool(t, url, role)
	if _, err := pool.Exec(t.Context(), `create table mine ()`); err == nil {
		t.Fatal("the role may create tables: this proves nothing")
	}
	return pool
}

func openPool(t *testing.T, url, role string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		config.ConnConfig.RuntimeParams["role"] = role
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
