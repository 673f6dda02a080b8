package console_test

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
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
	if !strings.Contains(waits.body, `<a href="event?account=&amp;id=e1&amp;source=letters">e1</a>`) {
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
		p.without(">e0</a>")
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
