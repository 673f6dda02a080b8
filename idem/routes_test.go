package idem_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func nothing(context.Context, pgx.Tx, *note) error { return nil }

func TestWrongRegistrationPanicsAndSaysWhy(t *testing.T) {
	t.Parallel()
	all := func(string) bool { return true }
	for name, c := range map[string]struct {
		register func(*idem.Routes)
		says     string
	}{
		"twice":                 {func(r *idem.Routes) { idem.Handle(r, "paid", nothing); idem.Handle(r, "paid", nothing) }, `"paid" has a handler already`},
		"nil":                   {func(r *idem.Routes) { idem.Handle[note](r, "paid", nil) }, `handler for "paid" is nil`},
		"after the first event": {func(r *idem.Routes) { _, _ = r.Route(idem.Event{}); idem.Handle(r, "paid", nothing) }, "before the first event"},
		"ignored and handled":   {func(r *idem.Routes) { r.Ignore("paid"); idem.Handle(r, "paid", nothing) }, "or is ignored"},
		"handled and ignored":   {func(r *idem.Routes) { idem.Handle(r, "paid", nothing); r.Ignore("paid") }, "has a handler"},
		"others twice":          {func(r *idem.Routes) { idem.HandleOthers(r, all, nothing); idem.HandleOthers(r, all, nothing) }, "registered already"},
		"others nil":            {func(r *idem.Routes) { idem.HandleOthers[note](r, all, nil) }, "is nil"},
		"ignored too late":      {func(r *idem.Routes) { _, _ = r.Route(idem.Event{}); r.Ignore("paid") }, "before the first event"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, c.says) {
					t.Errorf("panic %q, want one that says %q", said, c.says)
				}
			}()
			c.register(&idem.Routes{})
		})
	}
}

func TestRouteFindsTheHandlerOfItsType(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	var ran []string
	handler := func(name string) idem.Handler[*note] {
		return func(_ context.Context, _ pgx.Tx, n *note) error { ran = append(ran, name+" "+n.ID); return nil }
	}
	idem.Handle(&r, "paid", handler("paid"))
	idem.HandleOthers(&r, func(eventType string) bool { return eventType != "refused" }, handler("others"))
	r.Ignore("viewed")
	for _, c := range []struct {
		eventType, body string
		want            error
	}{
		{"paid", `{"id":"1"}`, nil},
		{"new", `{"id":"2"}`, nil},
		{"viewed", `{"id":"3"}`, nil},
		{"refused", `{"id":"4"}`, idem.ErrUnhandled},
	} {
		if err := idem.Dispatch(t.Context(), nil, &r, idem.Event{Type: c.eventType, Payload: []byte(c.body)}); !errors.Is(err, c.want) {
			t.Errorf("Dispatch(%s) = %v, want %v", c.eventType, err, c.want)
		}
	}
	if err := idem.Dispatch(t.Context(), nil, &r, idem.Event{Type: "paid", Payload: []byte(`{"id":5}`)}); err == nil {
		t.Error("an event that does not decode was dispatched")
	}
	if diff := cmp.Diff([]string{"paid 1", "others 2"}, ran); diff != "" {
		t.Error("handlers that ran (-want +got):\n" + diff)
	}
}

// A handler may change what it is given: another run of the same event must not
// see that.
func TestEachRunGetsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	idem.Handle(&r, "paid", func(_ context.Context, _ pgx.Tx, n *note) error {
		if n.Order != "o1" {
			t.Errorf("the handler got order %q", n.Order)
		}
		n.Order = "changed"
		return nil
	})
	for range 2 {
		if err := idem.Dispatch(t.Context(), nil, &r, identify([]byte(paid("e1")))); err != nil {
			t.Error(err)
		}
	}
}

func TestTypesListWhatToSubscribeTo(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	idem.Handle(&r, "paid", nothing)
	idem.Handle(&r, "created", nothing)
	r.Ignore("viewed")
	if diff := cmp.Diff([]string{"created", "paid"}, r.Types()); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	if !r.Handles("paid") || r.Handles("viewed") {
		t.Error("Handles does not tell what has a handler")
	}
}
