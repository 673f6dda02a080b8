package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Planning the statement takes Postgres as long as executing it. A group's plan is for its length.
func TestAnEventThatComesAloneIsStoredByAPlanThatIsMadeOnce(t *testing.T) {
	t.Parallel()
	pool := testkit.NewShop(t).Pool
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	insert := func(first, n int) {
		t.Helper()
		var group []store.Incoming
		for id := first; id < first+n; id++ {
			group = append(group, store.Incoming{Event: store.Event{Source: "notes", ID: fmt.Sprint(id), Type: "paid", Payload: []byte("{}")}})
		}
		stored, err := store.InsertPending(t.Context(), conn, group)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range stored {
			if !one.New {
				t.Errorf("of %d events from %d one is not stored", n, first)
			}
		}
	}
	plans := func() (n [2]int) { // those that were made once, and those that were made each time
		t.Helper()
		const ask = `select coalesce((to_jsonb(p) ->> 'generic_plans')::int, 0), coalesce((to_jsonb(p) ->> 'custom_plans')::int, 0)
			from pg_prepared_statements p where strpos(statement, $1) > 0`
		if err := conn.QueryRow(t.Context(), ask, "insert into idem_payloads").Scan(&n[0], &n[1]); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for id := range 8 {
		insert(id, 1)
	}
	alone := plans()
	insert(100, 300)
	if version := testkit.QueryOne[int](t, pool, `select current_setting('server_version_num')::int`); version < 140000 {
		return // it does not count plans
	}
	if diff := cmp.Diff([][2]int{{8, 0}, {8, 1}}, [][2]int{alone, plans()}); diff != "" {
		t.Error("plans after 8 events, one at a time, and after a group (-want +got):\n" + diff)
	}
}
