package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/store"
)

func TestSourcesAreListedOnceWhateverTheirNamesBeginWith(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Sources(t.Context(), pool); len(got) != 0 || err != nil {
		t.Errorf("Sources = %q, %v, want none", got, err)
	}
	_, err := pool.Exec(t.Context(), `insert into idem_events (event, type, key, state)
		select source || '/' || scope || '/' || n, '', '', 'done'
		from unnest(array['asaas', 'asaas-2', 'asaas2', 'a', 'zelta pay']) source, unnest(array['', 'shop']) scope, generate_series(1, 3) n`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.Sources(t.Context(), pool)
	if diff := cmp.Diff([]string{"a", "asaas", "asaas-2", "asaas2", "zelta pay"}, got); diff != "" || err != nil {
		t.Errorf("Sources: %v (-want +got):\n%s", err, diff)
	}
}
