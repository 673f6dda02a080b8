package drift_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/drift"
)

func TestZerosThatTheBodyDoesNotSayAreErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		body   string
		want   string
	}{
		{"all that it should be", string(event(`,"note":null`)), ""},
		{"zeros that it does say", `{"id":"1","order":{"total":0,"paid":false,"status":""}}`, ""},
		{"no zero, but an absence", `{"id":"1","order":{"total":1}}`, ""},
		{"an amount of null", `{"id":"1","order":{"total":null,"paid":true}}`, "order.total is null"},
		{"the same with spaces", "{\"id\":\"1\",\"order\":{\"paid\":true,\"total\" :\n null}}", "order.total is null"},
		{"null in a list", string(event(`,"lines":[null]`)), "order.lines[] is null"},
		{"null later in a list", string(event(`,"lines":[{"name":"a"}, null]`)), "order.lines[] is null"},
		{"a required null in a list", string(event(`,"lines":[{"name":null}]`)), "order.lines[].name is null"},
		{"what looks like null", string(event(`,"note":"\"total\":null, null, [null"`)), ""},
		{"null in what is free of form", string(event(`,"raw":{"total":null}`)), ""},
		{"the object is missing", `{"id":"1"}`, "order is missing"},
		{"the object has another name", `{"id":"1","sale":{"total":1}}`, "order is missing"},
		{"the object is null", `{"id":"1","order":null}`, "order is missing"},
		{"the object is empty", `{"id":"1","order":{}}`, "order is missing"},
	} {
		e := new(orderEvent)
		if err := json.Unmarshal([]byte(tt.body), e); err != nil {
			t.Fatalf("%s: %v", tt.reason, err)
		}
		err := drift.Check(e, []byte(tt.body))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.reason, err, tt.want)
		}
	}
	for _, e := range []any{nil, (*orderEvent)(nil), 5} {
		if err := drift.Check(e, []byte(`{"id":null}`)); err != nil {
			t.Errorf("no event: %v", err)
		}
	}
}

// What Check and Look say must agree, and neither may panic, whatever comes.
func FuzzWhatDecodesIsCheckedAsItIsWalked(f *testing.F) {
	for _, body := range []string{
		`{}`, `[]`, `null`, string(event(`,"lines":[null]`)), string(event(`,"note":null`)),
		`{"id":"1","order":{"total":null}}`, `{"id":"1","order":{"total" : null,"lines":[{"inner":null}]}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		findings := seen([]byte(body))
		e := new(orderEvent)
		if json.Unmarshal([]byte(body), e) != nil || e.Order.Paid == false {
			return
		}
		nulls := strings.Contains(strings.Join(findings, "\n"), "unexpected_null")
		// Names in another case, and escaped ones, are not looked for: too rare.
		if strings.ToLower(body) != body || strings.ContainsAny(body, "\\\u017f\u212a") {
			return
		}
		if err := drift.Check(e, []byte(body)); (err != nil) != nulls {
			t.Errorf("Check says %v, and the walk %v", err, findings)
		}
	})
}
