package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/internal/testkit"
)

// letter is the one event of the providers.
type letter = testkit.Note

// app is an application with two inboxes, and a page for both.
type app struct {
	*testing.T
	pool    *pgxpool.Pool
	inbox   *idem.Inbox // of the source "letters"
	first   *idem.Inbox // of the source "notes": it works first, without workers
	page    *console.Handler
	handler http.Handler // the page, or where it is mounted
	prefix  string       // of its addresses

	mu     sync.Mutex
	broken bool // whether handlers fail
	during func(*letter)
}

func newApp(t *testing.T) *app {
	t.Helper()
	return openApp(t, testkit.Open(t))
}

func openApp(t *testing.T, pool *pgxpool.Pool) *app {
	t.Helper()
	a := &app{T: t, pool: pool, prefix: "/", broken: true}
	letters, notes := testkit.NewSource("letters"), testkit.NewSource("notes")
	idem.Handle(&letters.Routes, "paid", a.handle)
	idem.Handle(&notes.Routes, "paid", a.handle)
	a.inbox, a.first = idem.NewInbox(pool, letters), idem.NewInbox(pool, notes)
	a.first.WorkFirst = true
	a.inbox.Logger, a.first.Logger = slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler)
	a.inbox.MaxAttempts, a.first.MaxAttempts = 1, 1
	a.page = console.New(a.inbox, a.first)
	a.page.Access = func(*http.Request) (string, console.Access) {
		return "ana", console.Access{See: true, Reveal: true, Act: true}
	}
	a.page.Logger = slog.New(slog.DiscardHandler)
	a.page.WaitForAll()
	t.Cleanup(a.page.Close)
	a.handler = a.page
	return a
}

func (a *app) handle(_ context.Context, _ pgx.Tx, l *letter) error {
	a.mu.Lock()
	broken, during := a.broken, a.during
	a.mu.Unlock()
	if during != nil {
		during(l)
	}
	if broken {
		return fmt.Errorf("no such order: %s", l.Order)
	}
	return nil
}

// fix has handlers succeed from now on.
func (a *app) fix() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = false
}

// letters stores events in the inbox, and has its workers try them.
func (a *app) letters(ids ...string) {
	a.Helper()
	for _, id := range ids {
		a.accept(a.inbox.Accept, idem.Event{ID: id, Type: "paid", Key: "order-" + id, Payload: body(id)})
	}
	if err := a.inbox.Drain(a.Context()); err != nil {
		a.Fatal(err)
	}
}

func body(id string) []byte {
	b, _ := json.Marshal(map[string]any{"id": id, "type": "paid", "order": "order-" + id, "cpf": "123.456.789-09", "value": json.Number("129.90")})
	return b
}

func (a *app) accept(accept func(context.Context, idem.Event) (idem.Outcome, error), e idem.Event) {
	a.Helper()
	if _, err := accept(a.Context(), e); err != nil {
		a.Fatal(err)
	}
}

// answer is what a request is answered.
type answer struct {
	*testing.T
	status int
	header http.Header
	body   string
}

func (a *app) do(r *http.Request) answer {
	a.Helper()
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r.WithContext(a.Context()))
	text, err := io.ReadAll(w.Body)
	if err != nil {
		a.Fatal(err)
	}
	return answer{a.T, w.Code, w.Header(), string(text)}
}

func (a *app) get(address string) answer {
	a.Helper()
	return a.do(httptest.NewRequest(http.MethodGet, a.prefix+address, nil))
}

func (a *app) post(name string, form url.Values) answer {
	a.Helper()
	r := httptest.NewRequest(http.MethodPost, a.prefix+name, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return a.do(r)
}

// confirm sends the form of a confirmation as a person would, with a reason.
func (a *app) confirm(address, reason string) answer {
	a.Helper()
	page := a.get(address)
	page.want(http.StatusOK)
	form := page.form("act")
	form.Set("reason", reason)
	a.workersElsewhere()
	return a.post("act", form)
}

// workersElsewhere has workers of all sources be alive that do nothing.
func (a *app) workersElsewhere() {
	a.Helper()
	testkit.KeepAlive(a, a.pool, "letters", "notes", "shop")
}

func (r answer) want(status int, texts ...string) {
	r.Helper()
	if r.status != status {
		r.Errorf("the answer is %d, want %d: %s", r.status, status, r.text())
	}
	for _, text := range texts {
		if !strings.Contains(r.text(), text) {
			r.Errorf("the page does not say %q:\n%s", text, r.text())
		}
	}
}

// own are the page's own scripts.
var own = regexp.MustCompile(`<script src="(?:live|times)\.js" nonce="([A-Z2-7]{26})" defer></script>`)

func (r answer) without(texts ...string) {
	r.Helper()
	for _, text := range texts {
		if strings.Contains(own.ReplaceAllString(r.body, ""), text) {
			r.Errorf("the page has %q:\n%s", text, r.body)
		}
	}
}

var (
	inline = regexp.MustCompile(`</?(?:time|wbr|bdi)[^>]*>`)
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
	forms  = regexp.MustCompile(`(?s)<form ([^>]*)>(.*?)</form>`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	links  = regexp.MustCompile(`(?:href|action)="([^"]*)"`)
)

// text is what people see of a page.
func (r answer) text() string {
	return spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(inline.ReplaceAllString(r.body, ""), " ")), " ")
}

// form returns the hidden fields of the form that is sent to an address.
func (r answer) form(action string) url.Values {
	r.Helper()
	for _, form := range forms.FindAllStringSubmatch(r.body, -1) {
		if !strings.Contains(form[1], `action="`+action+`"`) {
			continue
		}
		values := url.Values{}
		for _, input := range hidden.FindAllStringSubmatch(form[2], -1) {
			values.Add(html.UnescapeString(input[1]), html.UnescapeString(input[2]))
		}
		return values
	}
	r.Fatalf("the page has no form for %s:\n%s", action, r.body)
	return nil
}

// links are the addresses that the page leads to.
func (r answer) links() (all []string) {
	for _, link := range links.FindAllStringSubmatch(r.body, -1) {
		all = append(all, html.UnescapeString(link[1]))
	}
	return all
}

func (a *app) wantState(source, id string, want idem.State) {
	a.Helper()
	var got idem.State
	err := a.pool.QueryRow(a.Context(), `select state from idem_events where event = $1`, source+"//"+id).Scan(&got)
	if err != nil || got != want {
		a.Errorf("event %s is %q, %v, want %q", id, got, err, want)
	}
}
