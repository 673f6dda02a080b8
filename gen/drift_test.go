package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const driftSpec = "testdata/drift/spec.yaml"

// found runs the command, and returns its table, its overlay and its error.
func found(t *testing.T, args ...string) (table, overlay string, err error) {
	t.Helper()
	var b strings.Builder
	path := filepath.Join(t.TempDir(), "overlay.yaml")
	err = findDrift(append([]string{"-spec", driftSpec, "-overlay", path}, args...), &b)
	written, _ := os.ReadFile(path)
	return b.String(), string(written), err
}

func TestDriftIsPrintedAndProposed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"new.jsonl", "by_hand.json"} {
		path := filepath.Join("testdata/drift", name)
		table, overlay, err := found(t, path)
		if status(err) != 1 {
			t.Errorf("%s: the exit status is %d, %v", name, status(err), err)
		}
		compareWithGolden(t, path+".table.golden", table)
		compareWithGolden(t, path+".overlay.golden", overlay)
	}
}

func TestWhatTheSpecKnowsIsNoDrift(t *testing.T) {
	t.Parallel()
	table, overlay, err := found(t, "testdata/drift/known.json")
	if table != "" || overlay != "" || status(err) != 0 {
		t.Errorf("found %s, proposed %s, %v", table, overlay, err)
	}
}

// Drift, overlay, generate: and there is no drift any more.
func TestTheOverlayEndsTheDrift(t *testing.T) {
	const bodies = "testdata/drift/new.jsonl"
	overlay := filepath.Join(t.TempDir(), "overlay.yaml")
	if err := findDrift([]string{"-spec", driftSpec, "-overlay", overlay, bodies}, new(strings.Builder)); status(err) != 1 {
		t.Fatal(err)
	}
	if table, _, err := found(t, "-with", overlay, bodies, "testdata/drift/known.json"); err != nil {
		t.Errorf("there still is drift: %v\n%s", err, table)
	}

	dir := filepath.Join(t.TempDir(), "shop")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"generate", "-overlay", overlay, driftSpec, dir}); err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{"provider.go": fmt.Sprintf(handWritten, "shop")}
	for _, name := range []string{"types.gen.go", "events.gen.go"} {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = string(source)
	}
	files := token.NewFileSet()
	s := stubbed{files: files, std: importer.ForCompiler(files, "source", nil)}
	shop, err := s.check("shop", sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EventParcelSent", "ParcelEvent", "OrderStatusShipped", "Taxes"} {
		if shop.Scope().Lookup(name) == nil {
			t.Errorf("the code has no %s", name)
		}
	}
}

func TestOverlaysKeepTheOrderOfTheSpec(t *testing.T) {
	t.Parallel()
	overlay := filepath.Join(t.TempDir(), "overlay.yaml")
	text := "overlay: 1.0.0\ninfo: {title: One field, version: '1'}\nactions:\n" +
		"- target: $.components.schemas.Order\n  update: {properties: {aNew: {type: string}}}\n"
	if err := os.WriteFile(overlay, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := render(driftSpec, "shop", overlay)
	if err != nil {
		t.Fatal(err)
	}
	code := string(files[0].content)
	for _, field := range []string{`"id"`, `"status"`, `"total"`, `"lines,`, `"aNew,`} {
		_, rest, ok := strings.Cut(code, "`json:"+field)
		if !ok {
			t.Fatalf("%s is not where it should be in\n%s", field, code)
		}
		code = rest
	}
	if !strings.Contains(string(files[0].content), "from gen/testdata/drift/spec.yaml with overlay.yaml.") {
		t.Error("the header does not name the overlay")
	}
}

func TestWrongOverlaysAndBodiesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "overlay: 1.0.0\ninfo: {title: x, version: '1'}\nactions:\n"
	for _, tt := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"no bodies", nil, "usage:"},
		{"an unknown flag", []string{"-x", "y"}, "usage:"},
		{"no such body", []string{filepath.Join(dir, "nowhere.json")}, "cannot read the bodies"},
		{"no JSON", []string{file("a.json", `{"id":`)}, "is not JSON"},
		{"no such overlay", []string{"-with", filepath.Join(dir, "nowhere.yaml"), "x"}, "cannot read the overlay"},
		{"no YAML", []string{"-with", file("a.yaml", "\t"), "x"}, "is not YAML"},
		{"no overlay", []string{"-with", file("b.yaml", "openapi: 3.1.0"), "x"}, "is not an OpenAPI overlay"},
		{"a target that does not exist", []string{"-with", file("c.yaml", head+"- {target: $.nothing, update: {a: b}}"), "x"}, "does not fit the spec"},
		{"what the linter refuses", []string{"-with", file("d.yaml", head+"- {target: $.components.schemas.Order, update: {description: order}}"), "x"}, "correct the spec first"},
	} {
		_, _, err := found(t, tt.args...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || status(err) != 2 {
			t.Errorf("%s: got the status %d, %v, want %q", tt.reason, status(err), err, tt.want)
		}
	}
}

// Whatever comes, what is proposed fits the spec, and ends the drift that it
// says it ends.
func TestProposalsFitWhateverComes(t *testing.T) {
	t.Parallel()
	s, err := load(driftSpec)
	if err != nil {
		t.Fatal(err)
	}
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

func proposalFits(s *spec, path string) error {
	before, err := s.compare([]string{path})
	if err != nil {
		return err
	}
	proposal, err := s.propose(before)
	if err != nil || len(proposal.overlay.Actions) == 0 {
		return err
	}
	data, err := apply(&proposal.overlay, s.data)
	if err != nil {
		return err
	}
	changed, err := parse("changed", data)
	if err != nil {
		return err
	}
	after, err := changed.compare([]string{path})
	for _, d := range before {
		for _, still := range after {
			if d.proposed && still.EventType == d.EventType && still.Path == d.Path && still.Kind == d.Kind {
				err = fmt.Errorf("%s %s %s is in the overlay, and found again", d.EventType, d.Path, d.Kind)
			}
		}
	}
	return err
}

// anything is an event, or nearly, whose names are hard to make Go names of.
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
	table, _, err := found(t, path)
	if strings.Contains(table+err.Error(), "secret") {
		t.Errorf("%s\n%v", table, err)
	}
}
