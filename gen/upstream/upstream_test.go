package upstream

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

	"github.com/paghooks/paghooks/gen/spec"
)

var shop = watch{newFetcher()}

const shopSpec = "testdata/spec.yaml"

// changed is a document with the content of the spec, with replacements.
func changed(t *testing.T, oldnew ...string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/same.json")
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

func loaded(t testing.TB, path string) *spec.Spec {
	t.Helper()
	s, err := spec.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestADocumentThatSaysTheSameIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"testdata/same.json", served(t, 200, changed(t)), served(t, 200, changed(t, `"3.0.1"`, `"3.1.0"`))} {
		var out bytes.Buffer
		if n, err := shop.report(t.Context(), &out, loaded(t, shopSpec), source); err != nil || n != 0 || out.Len() > 0 {
			t.Errorf("%s: %d differences, %v:\n%s", source, n, err, &out)
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
			"gone    Order: OrderSaveResponseDTO is not in the document: if it has another name, correct the table in x-upstream",
			"gone    OrderStatus LOST: it is not in the document",
		}, "a schema has another name"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			n, err := shop.report(t.Context(), &out, loaded(t, shopSpec), served(t, 200, changed(t, tt.oldnew...)))
			if err != nil || n != len(tt.want) {
				t.Errorf("%d differences, %v, want %d", n, err, len(tt.want))
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
		{"testdata/nowhere.json", "check its path", "no such file"},
		{"ftp://example.com/a.json", "write http:// or https://", "not the web"},
		{"file:///etc/hosts", "write http:// or https://", "a file as an address"},
		{"https://", "write http:// or https://", "no host"},
		{"http://[::1", "write http:// or https://", "no address"},
		{nowhere.URL, "does not answer, try again", "nobody listens"},
		{loop.URL, "stopped after 10 redirects", "it redirects endlessly"},
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
			_, err := shop.report(context.Background(), &out, loaded(t, shopSpec), tt.source)
			if err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
				t.Errorf("%v, want %q", err, tt.want)
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
	_, err := impatient.report(t.Context(), new(bytes.Buffer), loaded(t, shopSpec), slow.URL)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: %v", err)
	}

	whole := changed(t)
	strict := shop
	strict.fetcher.limit = int64(len(whole))
	if _, err := strict.report(t.Context(), new(bytes.Buffer), loaded(t, shopSpec), served(t, 200, whole)); err != nil {
		t.Errorf("as large as allowed: %v", err)
	}
	for _, source := range []string{served(t, 200, whole+" "), largerFile(t, whole+" ")} {
		_, err := strict.report(t.Context(), new(bytes.Buffer), loaded(t, shopSpec), source)
		if err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("huge: %v", err)
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
	n, err := shop.report(t.Context(), &out, loaded(t, path), "testdata/same.json")
	if want := "changed OrderStatus SEE: it has x-undocumented, but is not in the spec's enum\n"; err != nil || n != 1 || out.String() != want {
		t.Errorf("%d differences, %v: got %q, want %q", n, err, &out, want)
	}
}

// The table names schemas of the real spec.
func TestTheTableOfCounterpartsFitsTheSpec(t *testing.T) {
	t.Parallel()
	s := loaded(t, "../../spec/asaas.yaml")
	if len(s.Upstream.Schemas) < 15 {
		t.Errorf("the spec compares %d schemas", len(s.Upstream.Schemas))
	}
	for name := range s.Upstream.Schemas {
		if s.Schemas()[name] == nil {
			t.Errorf("the spec has no schema %s", name)
		}
	}
}

// edited is the shop's spec with one text replaced.
func edited(t *testing.T, old, new string) *spec.Spec {
	t.Helper()
	text, err := os.ReadFile(shopSpec)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("the spec has no %s, %v", old, err)
	}
	path := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return loaded(t, path)
}

const table = "x-upstream:\n  document: same.json\n  events: WebhookConfig.events\n  schemas: {Order: [OrderGetResponseDTO, OrderSaveResponseDTO]}\n"

// A document of OpenAPI 3.1 may have the webhooks themselves, and our own names.
func TestASpecWithoutATableIsComparedByName(t *testing.T) {
	t.Parallel()
	const document = `{"openapi": "3.1.0", "webhooks": {"ORDER_PAID": {}, "ORDER_FOUND": {}},
		"components": {"schemas": {"Person": {"type": "object", "properties": {"name": {"type": "integer"}}}}}}`
	var out bytes.Buffer
	_, err := shop.report(t.Context(), &out, edited(t, table, ""), served(t, 200, document))
	want := "changed Person.name: it is an integer in the document, a string in the spec\n" +
		"gone    event ORDER_LOST: it is not in the document\n" +
		"new     event ORDER_FOUND: add it to the webhooks\n"
	if diff := cmp.Diff(want, out.String()); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

func TestTheSpecSaysWhereTheDocumentIs(t *testing.T) {
	t.Parallel()
	s := edited(t, "same.json", served(t, 200, changed(t)))
	if n, err := shop.report(t.Context(), new(bytes.Buffer), s, ""); n != 0 || err != nil {
		t.Errorf("%d differences, %v", n, err)
	}
	_, err := shop.report(t.Context(), new(bytes.Buffer), edited(t, table, ""), "")
	if err == nil || !strings.Contains(err.Error(), "names no document") {
		t.Errorf("got %v", err)
	}
}

// For any document the comparison ends, prints each difference in a line
// of its own, and says the same again.
func FuzzCompareTo(f *testing.F) {
	same, err := os.ReadFile("testdata/same.json")
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
	s, err := spec.Load(shopSpec)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parseOfficial(data, s.Upstream.Events)
		if err != nil {
			return
		}
		lines, err := compareTo(s, doc)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := compareTo(s, doc)
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

func TestATableThatNamesNoSchemaSaysSo(t *testing.T) {
	t.Parallel()
	astray := edited(t, "{Order: [", "{Parcel: [")
	_, err := shop.report(t.Context(), new(bytes.Buffer), astray, "testdata/same.json")
	if err == nil || !strings.Contains(err.Error(), "no schema Parcel: correct the table") {
		t.Errorf("got %v", err)
	}
}
