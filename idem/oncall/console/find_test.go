package console_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestAnEventSaysWhyItIsNotDone(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.accept(a.inbox.Accept, idem.Event{Scope: "shop/1", ID: "e2", Type: "paid", Key: "order-e2", Payload: body("e2")})
	a.accept(a.inbox.Accept, idem.Event{ID: "e3", Type: "paid", Key: "order-e1", Payload: body("e3")})
	const parked = "is parked: it has failed once, last with: no such order: order-e1; nothing happens to it until it is replayed, requeued or discarded."
	a.get("event?source=letters&id=e1").want(200, "It "+parked+" 1 event of its entity waits for it.", "Last attempts Failed at With 20")
	waits := a.get("event?source=letters&id=e3")
	waits.want(200, "It waits for e1, an earlier paid of its entity, which "+parked, "No workers are alive", "Waits for e1 parked")
	if !strings.Contains(waits.body, `<a href="event?account=&amp;id=e1&amp;source=letters"><bdi>e1</bdi></a>`) {
		t.Error("the page does not lead to the event that is waited for:\n" + waits.body)
	}
	a.workersElsewhere()
	if _, err := a.pool.Exec(t.Context(), `update idem_events set claimed_at = '2026-11-20 10:00Z', claimed_by = (select id from idem_workers where source = 'letters') where event like '%/e2'`); err != nil {
		t.Fatal(err)
	}
	a.get("event?source=letters&account=shop/1&id=e2").want(200,
		"Nothing is wrong: it is being processed since 2026-11-20 10:00:00 UTC, by process 7 on shop-1, which gave a sign of life", "Processed by process 7 on shop-1, since 2026-11-20 10:00:00 UTC")
}

// One field for whatever a person has: neither the source, nor the account, nor whether it is done.
func TestFindTakesAnEventOrAnEntityOfAnyAccountAndSource(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.fix()
	a.accept(a.processor.Accept, idem.Event{Scope: "shop/1", ID: "n1", Type: "paid", Key: "order-e1", Payload: body("n1")})
	a.accept(a.processor.Accept, idem.Event{ID: "n2", Type: "paid", Key: "order-n2", Payload: body("n2")})
	a.accept(a.processor.Accept, idem.Event{Scope: "shop/1", ID: "n2", Type: "paid", Key: "order-n2", Payload: body("n2")})

	for address, want := range map[string]string{
		"find?q=n1":   "event?account=shop%2F1&id=n1&source=notes",
		"find?q=+e1+": "event?account=&id=e1&source=letters",
	} {
		p := a.get(address)
		if p.want(303); p.header.Get("Location") != want {
			t.Errorf("%s leads to %s, want %s", address, p.header.Get("Location"), want)
		}
	}
	a.get("find?q=order-e1").want(200, "letters e1 : It is parked", "e1 no such order: order-e1 parked", "notes", "n1 shop/1 done")
	a.get("find?q=n2").want(200, "n2 done", "n2 shop/1 done")
	a.get("find?q=").want(200, "Write the id of an event")
	a.get("find?q=nothing").want(200, "No event has the id nothing, and none is about an entity of that name.")
	a.get("events?source=notes&entity=order-n2").want(200, "Done, or discarded", "n2 done", "n2 shop/1 done")
	a.get("events?source=notes&id=n2").want(200, "These have", "n2 shop/1 done")
	a.get("entity?source=notes&entity=order-n2").want(200, "n2 done", "n2 shop/1 done")
	a.get("entity?source=notes&entity=order-n2&account=shop/1").without("account=&amp;id=n2")
}

// Nobody waits for ten million rows without having asked for them.
func TestManyEventsAreReadOnlyWhenSomebodyAsks(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.fix()
	a.accept(a.inbox.Accept, idem.Event{ID: "e0", Type: "paid", Key: "order-e0", Payload: body("e0")})
	if err := a.inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		if _, err := a.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`update idem_events set key = 'order-e1' where event = 'letters//e0'`)
	exec(`update pg_class set reltuples = 3e6 where oid = 'idem_events'::regclass`)
	const ask = "Look for done ones, too : this reads about 3,000,000 events"
	for _, address := range []string{"find?q=order-e1", "entity?source=letters&entity=order-e1", "events?source=letters&entity=order-e1"} {
		p := a.get(address)
		p.want(200, "e1", ask, "create index concurrently idem_events_key on idem_events (key)")
		p.without("<bdi>e0</bdi>")
		for _, link := range p.links() {
			if strings.Contains(link, "all=1") {
				a.get(link).want(200, "e0 done")
			}
		}
		if !strings.Contains(p.body, "all=1") {
			t.Errorf("%s does not lead to done ones:\n%s", address, p.body)
		}
	}
	exec(`create index idem_events_key on idem_events (key)`)
	exec(`update pg_class set reltuples = 3e6 where oid = 'idem_events'::regclass`)
	a.get("find?q=order-e1").want(200, "e0 done")
	a.get("find?q=order-e1").without("all=1")
}

func TestConflictsAreListedAndSaidOfTheEvent(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.get("conflicts?source=letters").want(200, "No event came again with another body.")
	a.letters("e1")
	a.accept(a.inbox.Accept, idem.Event{ID: "e1", Type: "paid", Key: "order-e1", Payload: body("other")})
	a.get("conflicts?source=letters").want(200, "e1 pending paid order-e1 20")
	a.get("conflicts?source=notes").want(200, "No event came again with another body.")
	a.get("event?source=letters&id=e1").want(200, "Conflict it came again with another body at 20", "only one of the two was processed")
}

func TestSearchFindsPartsOfIdsInEveryState(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("evt-100", "evt-200")
	a.fix()
	a.accept(a.processor.Accept, idem.Event{Scope: "shop/1", ID: "other%1", Type: "paid", Key: "order-evt-100", Payload: body("other")})
	a.get("find?q=vt-10").want(200, "No event has the id vt-10", "Look for vt-10 elsewhere: as a part of ids and entities")
	found := a.get("search?in=part&q=+vt-1+")
	found.want(200, "letters", "evt-100", "notes", "other%1 shop/1 done", "This took")
	found.without("<bdi>evt-200<", "Not everything was looked through")
	a.get("search?in=part&q=er%251").want(200, "other%1") // it is no pattern
	a.get("search?in=part&q=vt_1").want(200, "There is none.")
	a.get("search?in=part&q=lett").want(200, "There is none.") // which is the source's name
	a.get("search?in=part&q=evt").want(400, "at least 4 letters")
	a.get("search?in=other&q=evt-100").want(400)
}

func TestSearchFindsEventsByDeclaredFieldsOfKeptBodies(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.get("find?q=cus_1").without("in fields of bodies")
	a.get("search?in=fields&q=cus_1").want(200, "not told this page of any fields")
	a.page.Fields = map[string][]string{"letters": {"customer", "externalReference", "number"}}
	for id, payload := range map[string]string{
		"e1": `{"payment":{"customer":"cus_1","name":"Maria"}}`,
		"e2": `{"payment":{"customer":"cus_11"}}`,
		"e3": `{"payment":{"items":[{"externalReference":"a \"b\" \\ ç"}]}}`,
		"e4": `{"note":"customer cus_1"}`,
		"e5": `{"number": 4711}`,
		"e6": `no JSON: "customer":"cus_1"`,
	} {
		a.accept(a.inbox.Accept, idem.Event{ID: id, Type: "new", Payload: []byte(payload)})
	}
	for text, want := range map[string]string{"cus_1": "e1", `a "b" \ ç`: "e3", "4711": "e5", "Maria": ""} {
		p := a.get("search?" + url.Values{"in": {"fields"}, "q": {text}}.Encode())
		p.want(200, "customer , externalReference , number", "events without a body are not found by a field")
		for n := 1; n <= 6; n++ {
			id := fmt.Sprint("e", n)
			if got := strings.Contains(p.body, "<bdi>"+id+"<"); got != (id == want) {
				t.Errorf("%s is found by %q: %t", id, text, got)
			}
		}
	}
	a.get("find?q=cus_1").want(200, "in fields of bodies")

	// A body that was dropped is not found, one that is kept is.
	if _, err := operator.New(a.inbox, "ana").Discard(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e1"}}, "x"); err != nil {
		t.Fatal(err)
	}
	a.get("search?in=fields&q=cus_1").without("<bdi>e1<")
	a.inbox.KeepPayloads = true
	if _, err := operator.New(a.inbox, "ana").Discard(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e5"}}, "x"); err != nil {
		t.Fatal(err)
	}
	a.get("search?in=fields&q=4711").want(200, "e5 discarded")
}

// Ten million events take longer than people wait: what was found by then is shown, and that it is not all.
func TestSearchThatTakesTooLongShowsWhatItHasFound(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	const many = `insert into idem_events (event, type, key, state) select 'letters//evt-' || n, 'paid', '', 'done' from generate_series(1, 300) n`
	if _, err := a.pool.Exec(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	a.get("search?in=part&q=evt-").want(200, "Not everything was looked through", "Look for up to 25 s")

	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `lock table idem_events`); err != nil {
		t.Fatal(err)
	}
	found := make(chan answer)
	go func() { found <- a.get("search?in=part&q=evt-") }()
	for waits := false; !waits; { // the lookup of what was found must not wait, too
		if err := tx.QueryRow(t.Context(), `select count(*) > 0 from pg_locks where not granted and relation = 'idem_events'::regclass`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	p := <-found
	p.want(200, "None was found in this time.", "Not everything was looked through")
}

// deadlines notes when the statements of a search must have ended.
type deadlines struct {
	mu  sync.Mutex
	all []time.Time
}

func (d *deadlines) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if at, ok := ctx.Deadline(); ok && strings.Contains(data.SQL, "position($2") {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all = append(d.all, at)
	}
	return ctx
}

func (*deadlines) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The page must not end before the search does: people would see an error, and nothing that was found.
func TestALongSearchHasThePagesTimeForIt(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(idemtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	var noted deadlines
	config.ConnConfig.Tracer = &noted
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	a := openApp(t, pool)
	for _, query := range []string{"search?in=part&q=evt-&long=1", "search?in=part&q=evt-"} {
		noted.all = nil
		begun := time.Now()
		a.get(query).want(200)
		if len(noted.all) != 2 {
			t.Fatalf("%d searches, want one of each source", len(noted.all))
		}
		least := 3 * time.Second
		if strings.Contains(query, "long") {
			least = 25 * time.Second
		}
		for _, at := range noted.all {
			if at.Sub(begun) < least {
				t.Errorf("%s must end after %s, and may take %s", query, at.Sub(begun), least)
			}
		}
	}
}

func TestEntityLeadsToTheProvidersPageThatTheApplicationNames(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.accept(a.inbox.Accept, idem.Event{ID: "e1", Type: "new", Key: "pay_1/2?x&y=+", Payload: body("e1")})
	a.get("event?source=letters&id=e1").without("at the provider")
	for to, want := range map[string]string{
		"https://erp.example/charges/{id}": `href="https://erp.example/charges/pay_1%2F2%3Fx%26y%3D%2B"`,
		"https://erp.example/?charge={id}": `href="https://erp.example/?charge=pay_1%2F2%3Fx%26y%3D%2B"`,
		"javascript:alert({id})":           "",
	} {
		a.page.Links = map[string]string{"pay_": to, "": "https://erp.example/", "cus_": "https://other.example/{id}"}
		if want == "" {
			delete(a.page.Links, "")
		}
		p := a.get("event?source=letters&id=e1")
		if got := strings.Contains(p.body, "at the provider"); got != (want != "") || !strings.Contains(p.body, want) {
			t.Errorf("by %q the event has not %s:\n%s", to, want, p.body)
		}
		p.without("javascript:", "other.example")
	}
}

// The merchant's office knows a customer or an order, and money without one: not the ids of events.
func TestChargesAreFoundByCustomerAndListedWhereTheyMatchNothing(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.get("unmatched").want(404, "The application has not told this page of any charges.")
	charge := console.Charge{Source: "letters", ID: "order-e1", Reference: "<b>order 17", Paid: "129.90", At: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	a.page.Charges = func(_ context.Context, name string, n int) ([]console.Charge, error) {
		if name != "cus_1" || n < 100 {
			return nil, nil
		}
		return []console.Charge{charge}, nil
	}
	found := a.get("find?q=cus_1")
	found.want(200, "Charges of this customer or reference", "order-e1 <b>order 17 129.90 2026-11-20 10:00:00 UTC")
	found.without("<b>order", "No event has the id")
	if link := "entity?account=&entity=order-e1&source=letters"; !slices.Contains(found.links(), link) {
		t.Errorf("the charge does not lead to %s:\n%s", link, found.body)
	}
	a.get("find?q=cus_2").want(200, "No event has the id cus_2")

	a.get("").without("unmatched")
	unmatched := []console.Charge{charge}
	a.page.Unmatched = func(context.Context, int) ([]console.Charge, error) { return unmatched, nil }
	a.page.Health = health.New(part{{Source: "letters", Name: "unmatched", Says: "1 paid charge matches nothing", Count: new(int64(1))}})
	a.page.Health.Logger = nil
	page := console.New(a.inbox)
	t.Cleanup(page.Close)
	page.Access, page.Unmatched, page.Health, a.handler = a.page.Access, a.page.Unmatched, a.page.Health, page
	page.WaitForCounts()
	overview := a.get("")
	overview.want(200, "Charges are paid that match nothing of the application's: match each, or give it back.", "1 unmatched paid charges that match nothing")
	if !slices.Contains(overview.links(), "unmatched?source=letters") || !slices.Contains(overview.links(), "unmatched") {
		t.Errorf("the overview does not lead to the charges:\n%s", overview.body)
	}
	a.get("unmatched").want(200, "order-e1 <b>order 17 129.90")
	unmatched = nil
	a.get("unmatched").want(200, "There is none.")
}
