package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/testkit"
)

// started is the one browser of all tests.
var started = sync.OnceValues(func() (context.Context, error) {
	path, err := chromium(context.Background())
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	stop = func() { cancelBrowser(); cancel() }
	return ctx, chromedp.Do(ctx)
})

var stop = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	stop()
	os.Exit(code)
}

// queues is the provider's side: one is stopped until it is released.
type queues struct{ released atomic.Bool }

func (q *queues) Queues(context.Context) ([]gauge.Queue, error) {
	held := gauge.Queue{ID: "q1", Name: "payments", URL: "https://shop.example/webhooks/letters", Enabled: true}
	if !q.released.Load() {
		held.Interrupted, held.Penalized, held.DeletesIn = true, 15, 13*24*time.Hour+5*time.Hour
	}
	return []gauge.Queue{held}, nil
}

func (q *queues) Release(context.Context, string) (string, error) {
	q.released.Store(true)
	return "the probe passed, the queue was resumed", nil
}

func (q *queues) Enable(context.Context, string) (string, error) { return "", nil }

// tab is an application with its page, and a browser's tab.
type tab struct {
	testing.TB
	ctx    context.Context
	pool   *pgxpool.Pool
	inbox  *idem.Inbox
	url    string // of the page
	broken atomic.Bool
	hold   sync.RWMutex // the handler waits for it
	ended  atomic.Bool  // whether the user's session is
	asked  atomic.Int64 // how many requests were made

	answers atomic.Int64 // the status of each answer of a proxy before the page, 0 for the page's own
}

func newTab(t testing.TB) *tab {
	t.Helper()
	browser, err := started()
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{TB: t, pool: testkit.Open(t)}
	p := testkit.NewSource("letters")
	b.broken.Store(true)
	idem.Handle(&p.Routes, "PAYMENT_RECEIVED", func(_ context.Context, _ pgx.Tx, l *testkit.Note) error {
		b.hold.RLock()
		defer b.hold.RUnlock()
		if b.broken.Load() {
			return fmt.Errorf("no such order: %s", l.Order)
		}
		return nil
	})
	b.inbox = idem.NewInbox(b.pool, p)
	b.inbox.Logger, b.inbox.MaxAttempts = slog.New(slog.DiscardHandler), 1
	page := console.New(b.inbox)
	page.Access = func(*http.Request) (string, console.Access) {
		b.asked.Add(1)
		return "ana@shop.example", console.Access{See: !b.ended.Load(), Reveal: true, Act: true}
	}
	page.Queues = map[string]gauge.Queues{"letters": &queues{}}
	page.Unmatched = func(context.Context, int) ([]console.Charge, error) {
		return []console.Charge{{Source: "letters", ID: "pay_080225913260", Reference: "order-4711", Paid: "129.90", At: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}}, nil
	}
	page.Charges = func(ctx context.Context, name string, n int) ([]console.Charge, error) {
		if name != "cus_1" {
			return nil, nil
		}
		return page.Unmatched(ctx, n)
	}
	t.Cleanup(page.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/ops/", func(w http.ResponseWriter, r *http.Request) {
		switch status := int(b.answers.Load()); status {
		case 0:
			page.ServeHTTP(w, r)
		case http.StatusSeeOther:
			http.Redirect(w, r, "/login", status)
		default:
			http.Error(w, "from a proxy", status)
		}
	})
	mux.HandleFunc("/login", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b.url = server.URL + "/ops/"

	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext()) // with cookies of its own
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1200, 850)); err != nil { // makes the tab, without a time-out
		t.Fatal(err)
	}
	b.ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return b
}

// accept stores events, and has workers try them.
func (b *tab) accept(events ...idem.Event) {
	b.Helper()
	for _, e := range events {
		if _, err := b.inbox.Accept(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.inbox.Drain(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func received(id, entity string) idem.Event {
	body, _ := json.Marshal(map[string]any{"id": id, "order": entity, "customer": map[string]any{"name": "Maria Silva", "cpfCnpj": "123.456.789-09"}, "value": json.Number("129.90")})
	return idem.Event{ID: id, Type: "PAYMENT_RECEIVED", Key: entity, OccurredAt: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Payload: body}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// open goes to a page.
func (b *tab) open(address string) {
	b.Helper()
	b.do(chromedp.Navigate(b.url + address))
}

// openCounted goes to the overview, which is shown without its numbers where they take more than a moment.
func (b *tab) openCounted() {
	b.Helper()
	for counted := false; !counted; counted = eval[bool](b, `document.querySelector(".tiles") != null`) {
		b.open("")
	}
}

// click clicks on what has a text, and waits for the page that it leads to.
func (b *tab) click(element, text string) {
	b.Helper()
	xpath := fmt.Sprintf(`//%s[starts-with(normalize-space(.), %q)]`, element, text)
	response, err := chromedp.RunResponse(b.ctx, chromedp.Click(xpath, chromedp.NodeVisible))
	if err != nil || response.Status != 200 {
		b.Fatalf("after a click on %s there is %+v, %v", text, response, err)
	}
}

func (b *tab) write(name, text string) {
	b.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(fmt.Sprintf(`main [name=%q]:not([type=hidden])`, name)), text))
}

// eval returns what a JavaScript expression is, as JSON has it.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// awaitText waits until the page has refreshed itself, and a text is visible.
func (b *tab) awaitText(text string) {
	b.Helper()
	for !strings.Contains(eval[string](b, `document.body?.innerText ?? ""`), text) {
		if b.ctx.Err() != nil {
			b.Fatalf("the page does not come to show %q", text)
		}
	}
}

// wantText checks what is visible.
func (b *tab) wantText(texts ...string) {
	b.Helper()
	visible := eval[string](b, `document.body.innerText`)
	for _, text := range texts {
		if !strings.Contains(visible, text) {
			b.Errorf("the page does not show %q:\n%s", text, visible)
		}
	}
}

func (b *tab) wantState(id string, want idem.State) {
	b.Helper()
	e, _, err := operator.New(b.inbox, "").Lookup(b.Context(), "", id)
	if err != nil || e.State != want {
		b.Errorf("event %s is %q, %v, want %q", id, e.State, err, want)
	}
}

func (b *tab) theme(theme string) {
	b.Helper()
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: theme}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}}); err != nil {
		b.Fatal(err)
	}
}

// fill makes some of everything, and returns the addresses of all pages.
func (b *tab) fill() []string {
	b.Helper()
	b.accept(received("evt_05b708f961d739ea7eba7e4db318f621&101", "pay_080225913252"), received("evt_05b708f961d739ea7eba7e4db318f621&102", "pay_080225913252"),
		received("evt_6f1c2a90b1d84c3f8e77d0a4f0c9e512&207", "pay_080225913260"), idem.Event{ID: "evt_3a9d&311", Type: "PAYMENT_SPLIT_CANCELLED", Key: "pay_080225913299", Payload: []byte(`{}`)})
	for _, table := range []string{"idem_events", "idem_payloads"} {
		if _, err := b.pool.Exec(b.Context(), `update `+table+` set received_at = received_at - interval '3 hours 12 minutes'`); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := b.pool.Exec(b.Context(), `update idem_events set conflict_at = now() where event like '%102'`); err != nil {
		b.Fatal(err)
	}
	b.broken.Store(false)
	op := operator.New(b.inbox, "ana@shop.example")
	do := func(p *operator.Plan, err error) {
		if err == nil {
			_, err = p.Do(b.Context(), "a test of the sandbox")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	do(op.PlanDiscard(b.Context(), idem.Filter{IDs: []string{"evt_3a9d&311"}}))
	do(op.PlanDryReplay(b.Context(), idem.Filter{}))
	const unended = `insert into idem_audit (id, actor, action, source, filter, reason, events, seen_at, result)
		select (select max(id) + 1 from idem_audit), 'ana@shop.example', 'replay', 'letters', 'states parked', '', array_agg(event), $1, '1 of 2: 1 done, 0 failed, 0 without a handler' from idem_events where state = 'parked'`
	for _, seen := range []string{"now", "yesterday"} { // the next one that runs, and one whose process died
		if _, err := b.pool.Exec(b.Context(), strings.Replace(unended, "$1", map[string]string{"now": "now() + interval '1 hour'", "yesterday": "now() - interval '1 day'"}[seen], 1)); err != nil {
			b.Fatal(err)
		}
	}
	const id = "evt_05b708f961d739ea7eba7e4db318f621%26101"
	return []string{
		"", "events?source=letters", "event?source=letters&id=" + id, "entity?source=letters&entity=pay_080225913252", "blocked?source=letters", "trail?source=letters",
		"action?source=letters&id=1", "confirm?source=letters&action=discard&id=" + id, "events?source=letters&state=failing", "nothing",
		"action?source=letters&id=2", "action?source=letters&id=3", "action?source=letters&id=4", "confirm?source=letters&action=replay",
		"confirm?source=letters&action=erase&one=1&account=&id=" + id, "events?source=letters&boxes=all",
		"find?q=pay_080225913252", "find?q=cus_1", "unmatched", "conflicts?source=letters", "event?source=letters&id=evt_05b708f961d739ea7eba7e4db318f621%26102",
	}
}

func (b *tab) zone(name string) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name}); err != nil {
		b.Fatal(err)
	}
}
