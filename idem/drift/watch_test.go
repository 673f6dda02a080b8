package drift_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/value"
)

type status string

func (s status) Known() bool { return s == "PAID" }

// whole is a number of this module's kind: it reads "5" too.
type whole int64

func (n *whole) UnmarshalJSON(data []byte) error {
	return json.Unmarshal([]byte(strings.Trim(string(data), `"`)), (*int64)(n))
}

// text reads a number too, as it is written.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	if data[0] == '{' || data[0] == '[' {
		return errors.New("not a text")
	}
	*t = text(strings.Trim(string(data), `"`))
	return nil
}

type line struct {
	Name  string                `json:"name"`
	Count value.Optional[whole] `json:"count,omitzero"`
	Inner value.Optional[*line] `json:"inner,omitzero"`
}

type envelope struct {
	ID text `json:"id"`
}

type order struct {
	Total  whole                             `json:"total"`
	Paid   bool                              `json:"paid"`
	Status status                            `json:"status"`
	States value.Optional[[]status]          `json:"states,omitzero"`
	Lines  value.Optional[[]line]            `json:"lines,omitzero"`
	Note   value.Optional[string]            `json:"note,omitzero"`
	Free   map[string]string                 `json:"free,omitempty"`
	Freer  value.Optional[map[string]string] `json:"freer,omitzero"`
	Raw    json.RawMessage                   `json:"raw,omitzero"`
}

type orderEvent struct {
	envelope

	Order order `json:"order"`
}

// event is a body whose order has these fields, besides those it must have.
func event(fields string) []byte {
	return []byte(`{"id":"evt_1","order":{"total":1,"paid":true,"status":"PAID"` + fields + `}}`)
}

// seen lists "kind path" of everything that is found in a body.
func seen(body []byte) (out []string) {
	var w drift.Watch
	w.Look("ORDER", new(orderEvent), nil, body)
	for _, f := range w.Findings() {
		out = append(out, string(f.Kind)+" "+f.Path)
	}
	return out
}

func TestEveryKindOfDriftIsSeenWithItsPath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		body   []byte
		want   []string
	}{
		{"nothing new", event(`,"note":"x","lines":[{"name":"a","count":5,"inner":{"name":"b"}}],"states":["PAID"]`), nil},
		{"null and absence, where they may be", event(`,"note":null,"lines":null,"freer":null`), nil},
		{"a new field", event(`,"new":{"id":1}`), []string{"unknown_field order.new"}},
		{"a new field in a list, twice", event(`,"lines":[{"name":"a","new":1},{"name":"b","new":2}]`), []string{"unknown_field order.lines[].new"}},
		{"a new field deep inside", event(`,"lines":[{"name":"a","inner":{"name":"b","new":1}}]`), []string{"unknown_field order.lines[].inner.new"}},
		{"a new family", []byte(`{"id":"evt_1","sale":{"id":"1"}}`), []string{"missing_required order", "unknown_field sale"}},
		{"a new value", []byte(`{"id":"1","order":{"total":1,"paid":true,"status":"NEW"}}`), []string{"unknown_value order.status"}},
		{"a new value in a list", event(`,"states":["PAID","NEW"]`), []string{"unknown_value order.states[]"}},
		{
			"null, where there is always a value", []byte(`{"id":"1","order":{"total":null,"paid":null,"status":"PAID"}}`),
			[]string{"unexpected_null order.paid", "unexpected_null order.total"},
		},
		{"null in a list", event(`,"lines":[null]`), []string{"unexpected_null order.lines[]"}},
		{"a number as a string", []byte(`{"id":"1","order":{"total":"5","paid":true,"status":"PAID"}}`), []string{"changed_type order.total"}},
		{"a string as a number", event(`,"note":5`), []string{"changed_type order.note"}},
		{"a text that expects numbers too", []byte(`{"id":5,"order":{"total":1,"paid":true,"status":"PAID"}}`), nil},
		{"a text that is an object", []byte(`{"id":{},"order":{"total":1,"paid":true,"status":"PAID"}}`), []string{"changed_type id"}},
		{"an object as a list", []byte(`{"id":"1","order":[]}`), []string{"changed_type order"}},
		{"a list as an object", event(`,"lines":{"name":"a"}`), []string{"changed_type order.lines"}},
		{"a bool as a string", []byte(`{"id":"1","order":{"total":1,"paid":"true","status":"PAID"}}`), []string{"changed_type order.paid"}},
		{"a number that does not fit", event(`,"lines":[{"name":"a","count":1.5}]`), []string{"changed_type order.lines[].count"}},
		{"a required field that is missing", []byte(`{"id":"1","order":{"total":1,"paid":true}}`), []string{"missing_required order.status"}},
		{"a name in another case, as encoding/json takes it", []byte(`{"ID":"1","order":{"total":1,"paid":true,"STATUS":"PAID"}}`), nil},
		{"what is free of form", event(`,"free":{"cpf":"1"},"freer":{"a":"b"},"raw":{"x":1}`), nil},
		{
			"names that may be data", event(`,"12345678909":1,"maria@example.com":1,"José":1,"address2":1`),
			[]string{"unknown_field order.*", "unknown_field order.address2"},
		},
		{"no JSON", []byte(`{"id`), []string{"unreadable "}},
		{"a list", []byte(`[]`), []string{"changed_type "}},
	} {
		if diff := cmp.Diff(tt.want, seen(tt.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestUnknownEventsAndUnreadableBodiesAreCounted(t *testing.T) {
	t.Parallel()
	var w drift.Watch
	w.Look("NEW_EVENT", nil, nil, []byte(`{"secret":"x"}`))
	w.Look("NEW_EVENT", nil, nil, []byte(`{}`))
	w.Look("maria@example.com", nil, nil, []byte(`{}`))
	w.Look("", nil, errors.New("x"), []byte(`{"secret`))
	var got []string
	for _, f := range w.Findings() {
		got = append(got, fmt.Sprint(f.EventType, " ", f.Kind, " ", f.Count))
	}
	want := []string{" unreadable 1", "* unknown_event 1", "NEW_EVENT unknown_event 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheFirstBodiesAndThenSomeAreCompared(t *testing.T) {
	t.Parallel()
	body := event(`,"new":1`)
	for _, tt := range []struct {
		every, bodies int
		want          int64
	}{
		{0, 16, 16}, {0, 255, 16}, {0, 256, 17}, {0, 1024, 20}, {1, 100, 100}, {10, 100, 16 + 9 - 0},
	} {
		w := drift.Watch{Every: tt.every}
		for range tt.bodies {
			w.Look("ORDER", new(orderEvent), nil, body)
		}
		if got := w.Findings()[0].Count; got != tt.want {
			t.Errorf("with Every %d, %d of %d bodies were compared, want %d", tt.every, got, tt.bodies, tt.want)
		}
	}
}

func TestBodiesThatDoNotDecodeAreAlwaysCompared(t *testing.T) {
	t.Parallel()
	var w drift.Watch
	for range 100 {
		w.Look("ORDER", new(orderEvent), errors.New("x"), event(`,"note":5`))
	}
	if got := w.Findings()[0].Count; got != 100 {
		t.Errorf("%d of 100 bodies were compared", got)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	w := drift.Watch{Every: 1}
	news := 0
	w.Observe = func(drift.Finding) { news++ }
	for i := range 1100 {
		name := fmt.Sprintf("field_%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676)
		for range 2 {
			w.Look("ORDER", new(orderEvent), nil, event(`,"`+name+`":1`))
		}
	}
	got := w.Findings()
	last := got[len(got)-1]
	if len(got) != 1001 || news != 1000 || last.Kind != drift.More || last.Count != 200 || last.Last.Before(last.First) {
		t.Errorf("%d findings, %d told of, and more: %+v; want 1001, 1000 and 200 more", len(got), news, last)
	}
}

func TestTheObserverIsToldOnceAndFindingsCountOn(t *testing.T) {
	t.Parallel()
	w := drift.Watch{Every: 1}
	var mu sync.Mutex
	var told []drift.Finding
	w.Observe = func(f drift.Finding) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, f)
		w.Findings() // does not deadlock
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				w.Look("ORDER", new(orderEvent), nil, event(`,"new":1`))
			}
		})
	}
	wg.Wait()
	got := w.Findings()
	if len(told) != 1 || told[0].Count != 1 || len(got) != 1 || got[0].Count != 400 || got[0].Last.Before(got[0].First) {
		t.Errorf("told %+v, and found %+v", told, got)
	}
}

func TestNoValueIsEverTold(t *testing.T) {
	t.Parallel()
	const secret = "S3CRET_1234567"
	body := event(`,"note":["` + secret + `"],"` + secret + `":{"` + secret + `":"` + secret + `"},"states":["` + secret + `"]`)
	if got := fmt.Sprint(seen(body)); strings.Contains(got, secret) || len(seen(body)) != 3 {
		t.Errorf("got %s", got)
	}
}

// totalOf is the need for an order's total, which is in one of two places.
func totalOf(zero bool) []drift.Essential {
	return []drift.Essential{{Zero: zero, Paths: []string{"order.total", "sale.total"}}}
}

func TestWhatAnEventIsNothingWithoutIsNeitherMissingNorNull(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, body string
		want         string // in the error
		kind         drift.Kind
	}{
		{"a zero that the body says", `{"order":{"total":0}}`, "", ""},
		{"the same in another case", `{"Order":{"TOTAL":0.00}}`, "", ""},
		{"false is said, too", `{"order":{"total":false}}`, "", ""},
		{"the other place", `{"sale":{"total":0}}`, "", ""},
		{"the other place, beside a null", `{"order":null,"sale":{"total":0}}`, "", ""},
		{"null", `{"order":{"total":null}}`, "order.total is null and sale is missing", drift.UnexpectedNull},
		{"absent", `{"order":{}}`, "order.total is missing", drift.MissingRequired},
		{"an empty text", `{"order":{"total":""}}`, "order.total is empty", drift.MissingRequired},
		{"the object is null", `{"order":null}`, "order is null", drift.UnexpectedNull},
		{"the object is absent", `{}`, "order is missing", drift.MissingRequired},
		{"the object is a list", `{"order":[{"total":1}]}`, "order.total is missing", drift.MissingRequired},
		{"no object", `[]`, "order is missing", drift.MissingRequired},
		{"no JSON", `{`, "does not decode", drift.Unreadable},
	} {
		err := drift.Check([]byte(tt.body), totalOf(true))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.reason, err, tt.want)
		}
		if lack, ok := errors.AsType[*drift.Incomplete](err); ok && lack.Kind != tt.kind {
			t.Errorf("%s: it is %s, want %s", tt.reason, lack.Kind, tt.kind)
		}
		if err := drift.Check([]byte(tt.body), totalOf(false)); err != nil {
			t.Errorf("%s: the struct has a value, and yet %v", tt.reason, err)
		}
	}
}

func TestWhatIsLackingIsFoundOnce(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"id":"1","order":{"total":null,"paid":true,"status":"PAID"}}`: {"unexpected_null order.total"},
		`{"id":"1","order":{"total":"","paid":true,"status":"PAID"}}`:   {"changed_type order.total", "missing_required order.total"},
	} {
		var w drift.Watch
		err := fmt.Errorf("the order is not complete: %w", drift.Check([]byte(body), totalOf(true)))
		w.Look("ORDER", new(orderEvent), err, []byte(body))
		var got []string
		for _, f := range w.Findings() {
			got = append(got, fmt.Sprint(f.Kind, " ", f.Path))
			if f.Count != 1 {
				t.Errorf("%s was counted %d times", f.Path, f.Count)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// checkedEvent says itself what it is nothing without, as generated events do.
type checkedEvent struct {
	Total value.Optional[int] `json:"total,omitzero"`
}

func (e *checkedEvent) Check(body []byte) error {
	return drift.Check(body, []drift.Essential{{Zero: e.Total.Or(0) == 0, Paths: []string{"total"}}})
}

func TestWhatIsLackingIsFoundThoughNobodyDecodedTheEvent(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"total":1}`:    "",
		`{"total":0}`:    "",
		`{"total":null}`: "unexpected_null total",
		`{}`:             "missing_required total",
		`{"total":"1"}`:  "changed_type total",
	} {
		var w drift.Watch
		w.Look("ORDER", new(checkedEvent), nil, []byte(body))
		var got strings.Builder
		for _, f := range w.Findings() {
			got.WriteString(fmt.Sprint(f.Kind, " ", f.Path))
		}
		if got.String() != want {
			t.Errorf("%s: found %q, want %q", body, got.String(), want)
		}
	}
}

// Neither may panic, whatever comes.
func FuzzAnyBodyIsCheckedAndWalked(f *testing.F) {
	for _, body := range []string{`{}`, `[]`, `null`, string(event(`,"lines":[null]`)), `{"id":"1","order":{"total":null}}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		err := drift.Check([]byte(body), totalOf(true))
		var w drift.Watch
		w.Look("ORDER", new(orderEvent), err, []byte(body))
		if err != nil && len(w.Findings()) == 0 {
			t.Errorf("%v, and nothing was found", err)
		}
	})
}
