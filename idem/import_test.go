package idem_test

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// all are events without errors.
func all(events ...operator.Imported) iter.Seq2[operator.Imported, error] {
	return func(yield func(operator.Imported, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestImportedEventThatComesAgainIsADuplicateWithoutAConflict(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *app{"inline": newApp, "inbox": newInboxApp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.on(pay)
			old := time.Now().Add(-20 * 24 * time.Hour).Truncate(time.Second)
			n, err := operator.Import(t.Context(), s.pool, "notes", "", all(
				operator.Imported{ID: "e1", ReceivedAt: old}, operator.Imported{ID: "e2"}, operator.Imported{ID: "e1"},
				operator.Imported{ID: "not \xff text"}, operator.Imported{ID: "e3", ReceivedAt: time.Now().Add(time.Hour)},
			))
			if n != 4 || err != nil {
				t.Fatalf("Import = %d, %v, want 4", n, err)
			}
			for _, id := range []string{"e1", "e2", "e1"} {
				if status, answer := s.deliver(paid(id)); status != http.StatusOK || answer != `{"received":true,"duplicate":true}` {
					t.Errorf("%s is answered %d %s, want a duplicate", id, status, answer)
				}
			}
			accept := s.processor.Accept
			if s.inbox != nil {
				accept = s.inbox.Accept
			}
			if o, err := accept(t.Context(), idem.Event{ID: "not \xff text", Type: "paid"}); o != idem.Duplicate || err != nil {
				t.Errorf("an id that is no text is %s, %v, want a duplicate", o, err)
			}
			s.wantEffects(0)
			conflicts, _, err := operator.New(s.processor, "").Conflicts(t.Context(), 100)
			if err != nil || len(conflicts) > 0 || strings.Contains(s.logged(), "conflict") {
				t.Errorf("conflicts are %v, %v\n%s", conflicts, err, s.logged())
			}
			s.wantRow("e1", "(type, key, state, body_hash is null)", `("","",done,t)`)
			if late := queryOne[int](s, `select count(*) from idem_events where received_at > now()`); late != 0 {
				t.Errorf("%d events came in the future", late)
			}
			if status, _ := s.deliver(paid("new")); status != http.StatusOK {
				t.Errorf("a new event is answered %d", status)
			}
		})
	}
}

// Whoever imports while the old program runs imports again when it has stopped.
func TestImportLeavesWhatIsStored(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	s.wantAnswer(paid("done"), http.StatusOK)
	s.wantAnswer(newBody, http.StatusOK) // unhandled
	before := queryOne[string](s, `select string_agg(e::text, ' ' order by event) from idem_events e`)
	ids := slices.Collect(func(yield func(string) bool) {
		for n := range 2500 {
			if !yield(fmt.Sprintf("i%d", n)) {
				return
			}
		}
	})
	events := []operator.Imported{{ID: "done"}, {ID: identify([]byte(newBody)).ID}}
	for _, id := range ids {
		events = append(events, operator.Imported{ID: id})
	}
	for _, want := range []int64{2500, 0} {
		if n, err := operator.Import(t.Context(), s.pool, "notes", "", all(events...)); n != want || err != nil {
			t.Fatalf("Import = %d, %v, want %d", n, err, want)
		}
	}
	after := queryOne[string](s, `select string_agg(e::text, ' ' order by event) from idem_events e where type <> ''`)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what was stored (-before +after):\n%s", diff)
	}
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	broken := errors.New("the old table cannot be read")
	for _, c := range []struct {
		reason, source, scope string
		events                iter.Seq2[operator.Imported, error]
		stored                int64
		says                  string
	}{
		{"no source", "", "", all(operator.Imported{ID: "e1"}), 0, "give the name that the receiver's source has"},
		{"a slash", "asaas/shop", "", all(operator.Imported{ID: "e1"}), 0, "give the name that the receiver's source has"},
		{"a long scope", "notes", strings.Repeat("x", 256), all(operator.Imported{ID: "e1"}), 0, "the scope has 256 bytes"},
		{"an empty id", "notes", "", all(operator.Imported{ID: "e1"}, operator.Imported{}), 1, "an event has no id"},
		{"an error", "notes", "shop", func(yield func(operator.Imported, error) bool) {
			_ = yield(operator.Imported{ID: "e1"}, nil) && yield(operator.Imported{}, broken)
		}, 1, broken.Error()},
	} {
		n, err := operator.Import(t.Context(), s.pool, c.source, c.scope, c.events)
		if n != c.stored || err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "operator: importing events: ") {
			t.Errorf("%s: Import = %d, %v, want %d and %q", c.reason, n, err, c.stored, c.says)
		}
	}
}
