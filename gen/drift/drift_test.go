package drift

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/gen/internal/golden"
	"github.com/paghooks/paghooks/gen/spec"
)

// reported returns the table and the number of differences of the bodies in a file.
func reported(t *testing.T, path string) (table string, differences int) {
	t.Helper()
	s, err := spec.Load("testdata/spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	differences, err = Report(&b, s, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), differences
}

func saved(t *testing.T, bodies string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bodies.jsonl")
	if err := os.WriteFile(path, []byte(bodies), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDriftIsPrinted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"new.jsonl", "changed.jsonl"} {
		path := filepath.Join("testdata", name)
		table, n := reported(t, path)
		if want := strings.Count(table, "\n") - 1; n != want {
			t.Errorf("%s: %d differences, and %d lines", name, n, want)
		}
		golden.Compare(t, path+".table.golden", table)
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
	s, err := spec.Load(saved(t, ordinary))
	if err != nil {
		t.Fatal(err)
	}
	path := saved(t, `{"kind":"order:paid","order":{"id":"1"}}
{"kind":"order:paid","order":{"id":"1","note":"x"},"more":"x"}
{"test":true}
{"kind":"parcel_sent","parcel":{"id":"1"}}
`)
	var table strings.Builder
	if _, err := Report(&table, s, []string{path}); err != nil {
		t.Fatal(err)
	}
	want := `EVENT        PATH        KIND           COUNT
order:paid   more        unknown_field  1
order:paid   order.note  unknown_field  1
parcel_sent  -           unknown_event  1
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatTheSpecKnowsIsNoDrift(t *testing.T) {
	t.Parallel()
	if table, n := reported(t, "testdata/known.jsonl"); table != "" || n != 0 {
		t.Errorf("%d differences: %s", n, table)
	}
}

func TestTablesTellNoValues(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(map[string]any{
		"id": "1", "event": "ORDER_PAID", "secret@example.com": 1,
		"order": map[string]any{"id": "secret", "status": "secret", "total": "secret", "done": true, "new": map[string]any{"secret 1": "secret"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if table, n := reported(t, saved(t, string(body))); strings.Contains(table, "secret") || n == 0 {
		t.Error(table)
	}
}

// No body makes the comparison panic, and a body is never compared to something else the second time.
func FuzzReport(f *testing.F) {
	for _, name := range []string{"new.jsonl", "changed.jsonl", "known.jsonl"} {
		bodies, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		for body := range strings.Lines(string(bodies)) {
			f.Add(body)
		}
	}
	s, err := spec.Load("testdata/spec.yaml")
	if err = errors.Join(err, s.Lint()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		path := saved(t, body)
		var first, second strings.Builder
		n, err := Report(&first, s, []string{path})
		again, _ := Report(&second, s, []string{path})
		if n != again || first.String() != second.String() || err == nil && (n == 0) != (first.Len() == 0) {
			t.Errorf("%d, then %d differences, %v:\n%s\n%s", n, again, err, first.String(), second.String())
		}
	})
}
