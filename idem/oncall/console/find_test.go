package console_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/oncall/console"
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
	a.accept(a.first.Accept, idem.Event{Scope: "shop/1", ID: "n1", Type: "paid", Key: "order-e1", Payload: body("n1")})
	a.accept(a.first.Accept, idem.Event{ID: "n2", Type: "paid", Key: "order-n2", Payload: body("n2")})
	a.accept(a.first.Accept, idem.Event{Scope: "shop/1", ID: "n2", Type: "paid", Key: "order-n2", Payload: body("n2")})

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
	a.get("events?source=notes&entity=order-n2").want(200, "All events of this entity, in the order of arrival")
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
	for _, address := range []string{"find?q=order-e1", "entity?source=letters&entity=order-e1"} {
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
	page.WaitForAll()
	overview := a.get("")
	overview.want(200, "Charges are paid that match nothing of the application's: match each, or give it back.", "1 unmatched paid charges that match nothing")
	if !slices.Contains(overview.links(), "unmatched?source=letters") || !slices.Contains(overview.links(), "unmatched") {
		t.Errorf("the overview does not lead to the charges:\n%s", overview.body)
	}
	a.get("unmatched").want(200, "order-e1 <b>order 17 129.90")
	unmatched = nil
	a.get("unmatched").want(200, "There is none.")
}
