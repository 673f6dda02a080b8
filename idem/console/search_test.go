package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/operator"
)

func TestSearchFindsPartsOfIdsInEveryState(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("evt-100", "evt-200")
	a.fix()
	a.accept(a.processor.Accept, idem.Event{Scope: "shop/1", ID: "other%1", Type: "paid", Key: "order-evt-100", Payload: body("other")})
	a.get("find?q=vt-10").want(200, "No event has the id vt-10", "Look for vt-10 elsewhere: as a part of ids and entities")
	found := a.get("search?in=part&q=+vt-1+")
	found.want(200, "letters", "evt-100", "notes", "other%1 shop/1 done", "This took")
	found.without(">evt-200<", "Not everything was looked through")
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
			if got := strings.Contains(p.body, ">"+id+"<"); got != (id == want) {
				t.Errorf("%s is found by %q: %t", id, text, got)
			}
		}
	}
	a.get("find?q=cus_1").want(200, "in fields of bodies")

	// A body that was dropped is not found, one that is kept is.
	if _, err := operator.New(a.inbox, "ana").Discard(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e1"}}, "x"); err != nil {
		t.Fatal(err)
	}
	a.get("search?in=fields&q=cus_1").without(">e1<")
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
