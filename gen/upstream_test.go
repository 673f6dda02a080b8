package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var shop = watch{
	fetcher:      newFetcher(),
	counterparts: map[string][]string{"Order": {"OrderGetResponseDTO", "OrderSaveResponseDTO"}},
}

const shopSpec = "testdata/upstream/spec.yaml"

// changed is the document that has what the spec has, with replacements.
func changed(t *testing.T, oldnew ...string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/upstream/same.json")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the document has no %s", oldnew[i])
		}
		text = strings.ReplaceAll(text, oldnew[i], oldnew[i+1])
	}
	return text
}

// served serves an answer, and the address of it.
func served(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") != userAgent || r.Method != "GET" {
			t.Errorf("asked with %s, User-Agent: %s", r.Method, r.Header.Get("User-Agent"))
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestADocumentThatSaysTheSameIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"testdata/upstream/same.json", served(t, 200, changed(t)), served(t, 200, changed(t, `"3.0.1"`, `"3.1.0"`))} {
		var out bytes.Buffer
		if err := shop.run(t.Context(), []string{"-spec", shopSpec, source}, &out); status(err) != 0 || out.Len() > 0 {
			t.Errorf("%s: status %d, %v:\n%s", source, status(err), err, &out)
		}
	}
}

func TestEveryDifferenceIsALine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		oldnew []string
		want   []string
		reason string
	}{
		{[]string{`"ORDER_LOST"]`, `"ORDER_LOST", "ORDER_FOUND"]`}, []string{"new     event ORDER_FOUND: add it to the webhooks"}, "a new event, listed twice"},
		{[]string{`"enum": ["ORDER_PAID", "ORDER_LOST"],`, ``, `"ORDER_LOST"]}`, `"ORDER_LOST", "ORDER_FOUND"]}`}, []string{"new     event ORDER_FOUND: add it to the webhooks"}, "a new event, at the items only"},
		{[]string{`"ORDER_PAID"`, `"ORDER_PAID", "ORDER_WAS_PAID"`}, nil, "an event that the spec has as another name"},
		{[]string{`, "ORDER_LOST"]`, `]`}, []string{"gone    event ORDER_LOST: it is not in the document"}, "an event is gone"},
		{[]string{`"ORDER_LOST"]`, `"ORDER_LOST", "ORDER_SEEN"]`}, []string{"changed event ORDER_SEEN: it is in the document now, take x-undocumented away"}, "an event is documented at last"},
		{[]string{`"note": {"type": "string"}`, `"gift": {"type": "boolean"}`}, []string{
			"gone    Order.note: it is not in the document",
			"new     Order.gift: add it, a boolean",
		}, "a property has another name"},
		{[]string{`"note": {`, `"hidden": {"type": "string"}, "note": {`}, []string{"changed Order.hidden: it is in the document now, take x-undocumented away"}, "a property is documented at last"},
		{[]string{`"note": {`, `"seller": {"$ref": "#/components/schemas/BuyerDTO"}, "note": {`}, []string{"changed Order.seller: it is in the document now, take x-undocumented away"}, "the mark stands beside a reference"},
		{[]string{`"total": {"type": "number"}`, `"total": {"type": "string"}`}, []string{"changed Order.total: it is a string in the document, a number in the spec"}, "a type changed"},
		{[]string{`"note": {"type": "string"}`, `"note": {"type": "array"}`}, []string{"changed Order.note: it is an array in the document, a string in the spec"}, "a text became a list"},
		{[]string{`"integer"`, `"object"`}, []string{"changed Order.number: it is an object in the document, a string in the spec"}, "no text and no number"},
		{[]string{`"note": {"type": "string"}`, `"note": {"type": "string", "enum": ["A", "B"]}`}, []string{"changed Order.note: it is an enum in the document: A, B"}, "a text became an enum"},
		{[]string{`"note": {"type": "string"}`, `"note": {}`}, nil, "no type at all"},
		{[]string{`["PAID"]`, `["PAID", "GONE"]`}, []string{"new     OrderStatus GONE: add it to the enum"}, "a new value"},
		{[]string{`["PAID"]`, `["PAYED"]`}, []string{"gone    OrderStatus PAID: it is not in the document", "new     OrderStatus PAYED: add it to the enum"}, "another value"},
		{[]string{`["PAID"]`, `["PAID", "SEEN"]`}, []string{"changed OrderStatus SEEN: it is in the document now, take x-undocumented away"}, "a value is documented at last"},
		{[]string{`"items": {"type": "string"}`, `"items": {"type": "string", "enum": ["RED", "BLUE"]}`}, []string{
			"gone    OrderTag GREEN: it is not in the document",
			"new     OrderTag BLUE: add it to the enum",
		}, "other values in a list"},
		{[]string{`"text": {"type": "string"}`, `"text": {"type": "number"}, "more": {"type": "string", "enum": ["A"]}`}, []string{
			"changed OrderLine.text: it is a number in the document, a string in the spec",
			"new     OrderLine.more: add it, an enum: A",
		}, "an object in a list"},
		{[]string{`["string", "null"]`, `"integer"`}, []string{"changed Person.name: it is an integer in the document, a string in the spec"}, "an object in the other answer"},
		{[]string{"BuyerDTO", "Circle"}, []string{
			"changed Order.buyer: its $ref leads nowhere in the document",
		}, "a reference that goes in circles"},
		{[]string{`"OrderSaveResponseDTO"`, `"OrderMadeResponseDTO"`}, []string{
			"gone    Order.buyer: it is not in the document",
			"gone    Order: OrderSaveResponseDTO is not in the document: if it has another name, correct the table in gen/upstream.go",
			"gone    OrderStatus LOST: it is not in the document",
		}, "a schema has another name"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := shop.run(t.Context(), []string{"-spec", shopSpec, served(t, 200, changed(t, tt.oldnew...))}, &out)
			if want := min(1, len(tt.want)); status(err) != want {
				t.Errorf("status %d, %v, want %d", status(err), err, want)
			}
			if diff := cmp.Diff(strings.Join(append(tt.want, ""), "\n"), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeComparedSaysWhy(t *testing.T) {
	t.Parallel()
	nowhere := httptest.NewServer(nil)
	nowhere.Close()
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }))
	t.Cleanup(loop.Close)
	toFile := httptest.NewServer(http.RedirectHandler("file:///etc/hosts", http.StatusFound))
	t.Cleanup(toFile.Close)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"openapi":`))
	}))
	t.Cleanup(cut.Close)
	whole := changed(t)
	for _, tt := range []struct{ source, want, reason string }{
		{"testdata/upstream/nowhere.json", "check its path", "no such file"},
		{"ftp://example.com/a.json", "write http:// or https://", "not the web"},
		{"file:///etc/hosts", "write http:// or https://", "a file as an address"},
		{"https://", "write http:// or https://", "no host"},
		{"http://[::1", "write http:// or https://", "no address"},
		{nowhere.URL, "does not answer, try again", "nobody listens"},
		{loop.URL, "stopped after 10 redirects", "it redirects for ever"},
		{toFile.URL, "unsupported protocol scheme", "it redirects away from the web"},
		{cut.URL, "did not arrive whole", "the connection is cut"},
		{served(t, 500, whole), "answers 500 Internal Server Error", "an error of the server"},
		{served(t, 404, "no"), "look whether the document has moved", "the document has moved"},
		{served(t, 204, ""), "answers 204", "nothing"},
		{served(t, 200, "\n<!DOCTYPE html><html></html>"), "this is HTML", "a page"},
		{served(t, 200, ""), "not whole JSON", "an empty document"},
		{served(t, 200, whole[:len(whole)/2]), "not whole JSON", "half a document"},
		{served(t, 200, "openapi: 3.0.1"), "not whole JSON", "YAML"},
		{served(t, 200, `[]`), "not whole JSON", "a list"},
		{served(t, 200, `null`), "no OpenAPI 3 document", "null"},
		{served(t, 200, `{"swagger":"2.0","definitions":{}}`), "no OpenAPI 3 document", "Swagger 2"},
		{served(t, 200, `{"openapi":"3.0.1","components":{"schemas":{"A":null}}}`), "no list of event names", "another API"},
		{served(t, 200, changed(t, `"events"`, `"eventTypes"`)), "no list of event names", "the list of events is elsewhere"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := shop.run(context.Background(), []string{"-spec", shopSpec, tt.source}, &out)
			if status(err) != 2 || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
				t.Errorf("status %d, %v, want %q", status(err), err, tt.want)
			}
		})
	}
}

func TestASlowOrHugeDocumentIsGivenUp(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	impatient := shop
	impatient.fetcher.timeout = time.Millisecond // it is never answered
	err := impatient.run(t.Context(), []string{"-spec", shopSpec, slow.URL}, new(bytes.Buffer))
	if status(err) != 2 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: status %d, %v", status(err), err)
	}

	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		_, _ = w.Write([]byte("{"))
	}))
	defer half.Close()
	err = shop.run(t.Context(), []string{"-spec", shopSpec, half.URL}, new(bytes.Buffer))
	if status(err) != 2 || !strings.Contains(err.Error(), "did not arrive whole") {
		t.Errorf("half: status %d, %v", status(err), err)
	}

	whole := changed(t)
	strict := shop
	strict.fetcher.limit = int64(len(whole))
	if err := strict.run(t.Context(), []string{"-spec", shopSpec, served(t, 200, whole)}, new(bytes.Buffer)); err != nil {
		t.Errorf("as large as allowed: %v", err)
	}
	for _, source := range []string{served(t, 200, whole+" "), largerFile(t, whole+" ")} {
		err := strict.run(t.Context(), []string{"-spec", shopSpec, source}, new(bytes.Buffer))
		if status(err) != 2 || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("huge: status %d, %v", status(err), err)
		}
	}
}

func largerFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "huge.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAWrongUpstreamCommandCannotCompare(t *testing.T) {
	t.Parallel()
	astray := shop
	astray.counterparts = map[string][]string{"Parcel": {"ParcelDTO"}}
	for _, tt := range []struct {
		watch watch
		args  []string
		want  string
	}{
		{shop, nil, "usage: go run ./gen"},
		{shop, []string{"a.json", "b.json"}, "usage: go run ./gen"},
		{shop, []string{"-spek", "a.yaml", "b.json"}, "usage: go run ./gen"},
		{shop, []string{"-spec", "nowhere.yaml", "testdata/upstream/same.json"}, "cannot read the spec"},
		{shop, []string{"-spec", "testdata/bad/no-docs.yaml", "testdata/upstream/same.json"}, "correct the spec first"},
		{astray, []string{"-spec", shopSpec, "testdata/upstream/same.json"}, "no schema Parcel: correct the table"},
	} {
		err := tt.watch.run(t.Context(), tt.args, new(bytes.Buffer))
		if status(err) != 2 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: status %d, %v, want %q", tt.args, status(err), err, tt.want)
		}
	}
}

func TestAMarkOfNothingIsNoticed(t *testing.T) {
	t.Parallel()
	spec, err := os.ReadFile(shopSpec)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(path, bytes.Replace(spec, []byte("[SEEN]"), []byte("[SEEN, SEE]"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = shop.run(t.Context(), []string{"-spec", path, "testdata/upstream/same.json"}, &out)
	if want := "changed OrderStatus SEE: it has x-undocumented, but is not in the spec's enum\n"; status(err) != 1 || out.String() != want {
		t.Errorf("status %d, %v: got %q, want %q", status(err), err, &out, want)
	}
}

// The table names schemas of the real spec.
func TestTheTableOfCounterpartsFitsTheSpec(t *testing.T) {
	t.Parallel()
	s, err := load("../spec/asaas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name := range counterparts {
		if s.schemas()[name] == nil {
			t.Errorf("the spec has no schema %s", name)
		}
	}
}

// Whatever a document says, the comparison ends, says each difference in a line
// of its own, and says the same again.
func FuzzCompareTo(f *testing.F) {
	same, err := os.ReadFile("testdata/upstream/same.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(same)
	for _, schema := range []string{
		`null`, `{"type":["null"]}`, `{"$ref":"#/components/schemas/OrderGetResponseDTO"}`,
		`{"properties":{"id":null,"buyer":{"$ref":"#/components/schemas/OrderGetResponseDTO"},"a\nb":{"enum":[1,"x"]}}}`,
		`{"properties":{"tags":{"type":"array"},"lines":{"type":"array","items":{"properties":{"order":{"$ref":"#/components/schemas/OrderGetResponseDTO"}}}}}}`,
	} {
		f.Add([]byte(`{"openapi":"3.0.1","components":{"schemas":{"WebhookConfigX":{"properties":{"events":{"enum":["A"]}}},"OrderGetResponseDTO":` + schema + `}}}`))
	}
	s, err := load(shopSpec)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parseOfficial(data)
		if err != nil {
			return
		}
		lines, err := s.compareTo(doc, shop.counterparts)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := s.compareTo(doc, shop.counterparts)
		if diff := cmp.Diff(lines, again); diff != "" {
			t.Errorf("the second time it is different:\n%s", diff)
		}
		for _, line := range lines {
			if strings.ContainsAny(line, "\n\r\x1b") {
				t.Errorf("%q is not one line", line)
			}
		}
	})
}
