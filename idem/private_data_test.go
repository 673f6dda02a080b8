package idem_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// placesOf lists the places that a section of docs/private-data.md names: what is code in the first
// cells of its table.
func placesOf(t *testing.T, section string) (places []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/private-data.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.SplitSeq(rest, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			for _, match := range code.FindAllStringSubmatch(cells[1], -1) {
				places = append(places, match[1])
			}
		}
	}
	slices.Sort(places)
	return places
}

// hearing is a tracer that notes what it is told.
type hearing struct {
	mu    sync.Mutex
	heard strings.Builder
}

func (h *hearing) Start(ctx context.Context, _ idem.Span) (context.Context, func(idem.Observation)) {
	return ctx, func(o idem.Observation) {
		h.mu.Lock()
		defer h.mu.Unlock()
		fmt.Fprintf(&h.heard, "%v\n", o.Err)
	}
}

func (h *hearing) Carrier(context.Context) string { return "a carrier for " + secret }

func (h *hearing) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard.String()
}

func TestPrivateDataIsWhereThePageSaysAndNowhereAfterErase(t *testing.T) {
	t.Parallel()
	const entity, actor, reason = "cus-7781", "ines@shop", "request-17"
	letter := func(id string) idem.Event {
		return identify(fmt.Appendf(nil, `{"id":"evt-5512-%[1]s","type":"paid","order":"%[2]s-%[1]s","name":%[3]q}`, id, entity, secret))
	}
	s := newInboxApp(t)
	var fixed atomic.Bool
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if fixed.Load() {
			return nil
		}
		return fmt.Errorf("no order of %s", secret)
	})
	heard := &hearing{}
	s.processor.KeepPayloads, s.processor.ParkAfter, s.processor.Tracer = true, 2, heard
	s.inbox.KeepPayloads, s.inbox.MaxAttempts, s.inbox.Tracer = true, 1, heard

	person, ids := map[string]bool{}, map[string]bool{} // where they are
	look := func() {
		for _, place := range s.columnsWith(secret) {
			person[place] = true
		}
		for _, id := range []string{entity, "evt-5512", actor, reason} {
			for _, place := range s.columnsWith(id) {
				ids[place] = true
			}
		}
	}
	ines := operator.New(s.inbox, actor)
	ines.Progress = func(sum idem.Replayed, of int) { // she stops what she has begun, at its last event
		if sum.Failed != of {
			return
		}
		running, err := ines.Actions(t.Context(), 0, 1)
		if err == nil {
			err = ines.Stop(t.Context(), running[0].ID, reason)
		}
		if err != nil {
			t.Error(err)
		}
	}
	accept := func(accept func(context.Context, idem.Event) (idem.Outcome, error), id string, want idem.Outcome) {
		t.Helper()
		if outcome, _ := accept(t.Context(), letter(id)); outcome != want {
			t.Errorf("%s is %s, want %s", id, outcome, want)
		}
		look()
	}
	replay := func(want idem.Replayed) {
		t.Helper()
		if sum, err := ines.Replay(t.Context(), idem.Filter{}, reason); counted(sum) != counted(want) || err != nil {
			t.Errorf("Replay = %+v, %v, want %+v", sum, err, want)
		}
		look()
	}

	// Delivered, failed, parked, in both modes.
	accept(s.processor.Accept, "inline", idem.Retrying)
	accept(s.processor.Accept, "inline", idem.Parked)
	accept(s.inbox.Accept, "worked", idem.Pending)
	s.drain(1)
	look()

	// Replayed in vain, looked at, given up; then fixed, done and archived.
	replay(idem.Replayed{Failed: 2})
	err := ines.Record(t.Context(), "reveal", "notes//evt-5512-inline", reason, func(context.Context) (string, error) { return "shown", nil })
	if err != nil {
		t.Fatal(err)
	}
	if n, err := ines.Discard(t.Context(), idem.Filter{IDs: []string{"evt-5512-worked"}}, reason); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	look()
	fixed.Store(true)
	replay(idem.Replayed{Done: 1})
	fixed.Store(false)
	accept(s.inbox.Accept, "open", idem.Pending)
	s.drain(1)
	look()

	logged, observed := s.logged(), ""
	for _, o := range s.observations() {
		observed += fmt.Sprintf("%v %s\n", o.Err, o.Event.Payload)
		if text := o.Label + o.Source + string(o.Outcome); strings.Contains(text, secret) || strings.Contains(text, entity) {
			t.Errorf("labels of metrics are %q", text)
		}
	}
	for place, text := range map[string]string{"Logger": logged, "Observe": observed, "Tracer": heard.text()} {
		if strings.Contains(text, secret) {
			person[place] = true
		}
	}
	if strings.Contains(logged, `"name"`) || strings.Contains(logged, `\"name\"`) {
		t.Error("the log has a body:\n" + logged)
	}
	if diff := cmp.Diff(placesOf(t, "Data about the person"), slices.Sorted(maps.Keys(person))); diff != "" {
		t.Error("places with the person's name (-the page +found):\n" + diff)
	}
	maps.DeleteFunc(ids, func(place string, _ bool) bool { return person[place] })
	if diff := cmp.Diff(placesOf(t, "Ids, and persons that act"), slices.Sorted(maps.Keys(ids))); diff != "" {
		t.Error("places with ids and names of operators (-the page +found):\n" + diff)
	}

	// Erased, and delivered again.
	ines.EraseNotDone = true
	s.erase(ines, operator.Erased{Events: 3}, "evt-5512-inline", "evt-5512-worked", "evt-5512-open")
	for _, id := range []string{"inline", "worked", "open"} {
		accept(s.processor.Accept, id, idem.Duplicate)
		accept(s.inbox.Accept, id, idem.Duplicate)
	}
	if found := s.columnsWith(secret); found != nil {
		t.Errorf("after Erase the person's name is in %v", found)
	}
	left := map[string]bool{}
	for _, id := range []string{entity, "evt-5512"} {
		for _, place := range s.columnsWith(id) {
			left[place] = true
		}
	}
	want := []string{"idem_audit.events", "idem_audit.filter", "idem_audit.result", "idem_audit_events.event", "idem_event_log.entity", "idem_event_log.event_id", "idem_events.event", "idem_events.key"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(left))); diff != "" {
		t.Error("ids that are left (-want +got):\n" + diff)
	}
}
