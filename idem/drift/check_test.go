package drift_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/optional"
)

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
	Total optional.Value[int] `json:"total,omitzero"`
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
