package drift

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/gen/internal/golden"
	"github.com/paghooks/paghooks/gen/spec"
)

const driftSpec = "testdata/spec.yaml"

func loaded(t *testing.T) *spec.Spec {
	t.Helper()
	s, err := spec.Load(driftSpec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reported is the table, the overlay and the number of differences of bodies.
func reported(t *testing.T, path string) (table, overlay string, differences int) {
	t.Helper()
	var b strings.Builder
	to := filepath.Join(t.TempDir(), "overlay.yaml")
	differences, err := Report(&b, loaded(t), []string{path}, to)
	if err != nil {
		t.Fatal(err)
	}
	written, _ := os.ReadFile(to)
	return b.String(), string(written), differences
}

func TestDriftIsPrintedAndProposed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"new.jsonl", "by_hand.json"} {
		path := filepath.Join("testdata", name)
		table, overlay, n := reported(t, path)
		if want := strings.Count(table, "\n") - 1; n != want {
			t.Errorf("%s: %d differences, and %d lines", name, n, want)
		}
		golden.Compare(t, path+".table.golden", table)
		golden.Compare(t, path+".overlay.golden", overlay)
	}
}

// An ordinary document has objects inline, links to nothing, and no envelope.
const ordinary = `openapi: 3.1.0
info: {title: Another shop, version: "1"}
x-provider: {event: {type: kind, ping: test}, verify: [{scheme: none}]}
webhooks:
  order:paid:
    post: {summary: An order was paid., requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/OrderEvent"}}}}}
components:
  schemas:
    OrderEvent:
      type: object
      properties:
        kind: {type: string}
        order: {type: object, properties: {id: {type: string}}}
`

func TestAnOrdinarySpecIsCompared(t *testing.T) {
	t.Parallel()
	s, err := spec.Parse("shop.yaml", []byte(ordinary))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bodies.jsonl")
	bodies := `{"kind":"order:paid","order":{"id":"1"}}
{"kind":"order:paid","order":{"id":"1","note":"x"},"more":"x"}
{"test":true}
{"kind":"order_lost","order":{"id":"1"}}
{"kind":"parcel_sent","parcel":{"id":"1"}}
`
	if err := os.WriteFile(path, []byte(bodies), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "overlay.yaml")
	var table strings.Builder
	if _, err := Report(&table, s, []string{path}, to); err != nil {
		t.Fatal(err)
	}
	want := `EVENT        PATH        KIND           COUNT  CHANGE
order:paid   more        unknown_field  1      in the overlay
order:paid   order.note  unknown_field  1      by hand
order_lost   -           unknown_event  1      in the overlay
parcel_sent  -           unknown_event  1      by hand
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Order fits, and holds itself by a pointer.
func TestAnObjectInOneOfItsKindIsProposed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "body.json")
	body := `{"id":"1","event":"ORDER_PAID","order":{"id":"o1","status":"PAID","total":1,"done":true,"old":{"id":"o0","status":"PAID","total":1,"done":true}}}`
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	table, overlay, _ := reported(t, path)
	if !strings.Contains(table, "in the overlay") || !strings.Contains(overlay, "schemas/Order") {
		t.Errorf("%s\n%s", table, overlay)
	}
}

func TestWhatTheSpecKnowsIsNoDrift(t *testing.T) {
	t.Parallel()
	if table, overlay, n := reported(t, "testdata/known.json"); table != "" || overlay != "" || n != 0 {
		t.Errorf("%d differences: found %s, proposed %s", n, table, overlay)
	}
}

// For any bodies, the proposal fits the spec, and ends the drift that it
// says it ends.
func TestProposalsFitWhateverComes(t *testing.T) {
	t.Parallel()
	s := loaded(t)
	path := filepath.Join(t.TempDir(), "bodies.json")
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var bodies []byte
		for range 1 + r.IntN(3) {
			body, _ := json.Marshal(anything(r, 4))
			bodies = append(bodies, body...)
		}
		if err := os.WriteFile(path, bodies, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := proposalFits(s, path); err != nil {
			t.Errorf("%v, of the bodies\n%s", err, bodies)
		}
	}
}

func proposalFits(s *spec.Spec, path string) error {
	before, err := compare(s, []string{path})
	if err != nil {
		return err
	}
	proposal, err := propose(s, before)
	if err != nil || len(proposal.overlay.Actions) == 0 {
		return err
	}
	data, err := spec.Apply(&proposal.overlay, s.Data)
	if err != nil {
		return err
	}
	changed, err := spec.Parse("changed", data)
	if err != nil {
		return err
	}
	after, err := compare(changed, []string{path})
	for _, d := range before {
		for _, still := range after {
			if d.proposed && still.EventType == d.EventType && still.Path == d.Path && still.Kind == d.Kind {
				err = fmt.Errorf("%s %s %s is in the overlay, and found again", d.EventType, d.Path, d.Kind)
			}
		}
	}
	return err
}

// anything is an event, or nearly, with names that are hard to turn into Go names.
func anything(r *rand.Rand, depth int) any {
	names := []string{
		"id", "ID", "event", "order", "Order", "status", "total", "lines", "value", "type", "null", "3ds", "a b", "-", "",
		"envelope", "Event", "dispatcher", "int", "date", "order_status", "parcel", "Parcel", "parcels", "on", "orderEvent", "x-go-type", "$ref", "~1/",
	}
	leaves := []any{
		nil, true, "PAID", "NEW", "new", "", "null", "2026-08-08", "2026-08-08 10:00:00", "maria@example.com", "#", "- a: b",
		json.Number("1"), json.Number("1.50"), json.Number("1e400"), json.Number("-0"),
		[]any{},
		map[string]any{},
	}
	switch kind := r.IntN(10); {
	case depth == 4:
		types := []string{"ORDER_PAID", "ORDER_PAID", "ORDER_NEW", "PARCEL_NEW", "3", "paid.order"}
		event := map[string]any{"id": "1", "event": types[r.IntN(len(types))]}
		for _, name := range []string{"order", "parcel", names[r.IntN(len(names))]} {
			if r.IntN(2) == 0 {
				event[name] = anything(r, 3)
			}
		}
		return event
	case depth == 0 || kind < 3:
		return leaves[r.IntN(len(leaves))]
	case kind < 5:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, anything(r, depth-1))
		}
		return list
	}
	object := make(map[string]any)
	for range r.IntN(6) {
		object[names[r.IntN(len(names))]] = anything(r, depth-1)
	}
	return object
}

func TestTablesTellNoValues(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(map[string]any{
		"id": "1", "event": "ORDER_PAID", "secret@example.com": 1,
		"order": map[string]any{"id": "secret", "status": "secret", "total": "secret", "done": true, "new": map[string]any{"secret 1": "secret"}},
	})
	path := filepath.Join(t.TempDir(), "bodies.json")
	if err := errors.Join(err, os.WriteFile(path, body, 0o600)); err != nil {
		t.Fatal(err)
	}
	if table, _, _ := reported(t, path); strings.Contains(table, "secret") {
		t.Error(table)
	}
}
