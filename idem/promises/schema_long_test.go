//go:build long

package promises_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A row of one partition has the place of another's row.
func TestPruneOfPartitionsForgetsOnlyWhatIsOld(t *testing.T) {
	t.Parallel()
	s := newPartitionedApp(t)
	s.exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || case when n % 2 = 0 then 'old-' else 'new-' end || n, 'paid', '', 'done',
			case when n % 2 = 0 then now() - interval '50 days' else now() end
		from generate_series(1, 40000) n`)
	if n := queryOne[int](s, `select count(*) - count(distinct ctid) from idem_events`); n < 20_000 {
		t.Fatalf("only %d rows have the place of another", n)
	}
	s.wantSeen(s.processor)
	if n, err := engineOf(s.processor).DryPrune(t.Context()); n != 20_000 || err != nil {
		t.Errorf("DryPrune = %d, %v, want 20000", n, err)
	}
	s.wantPruned(s.processor, 20_000)
	if n := queryOne[int](s, `select count(*) from idem_events where event like 'notes//new-%'`); n != 20_000 {
		t.Errorf("%d of 20000 events that are new are left", n)
	}
	s.wantPruned(s.processor, 0)
}

// The table is behind a view here, which has no ctid, as Postgres's relatives have
// none.
func TestPruneWithoutPlacesOfRows(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.stock(1, 10, 50)
	s.exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'done', now() - interval '50 days' from generate_series(1, 20000) n`)
	for _, table := range []string{"idem_events", "idem_archive"} {
		s.exec(fmt.Sprintf(`alter table %[1]s rename to %[1]s_rows; create view %[1]s as select * from %[1]s_rows`, table))
	}
	s.processor.Retention.Payloads = 5 * 24 * time.Hour
	s.wantSeen(s.processor)
	if n, err := engineOf(s.processor).DryPrune(t.Context()); n != 20_003 || err != nil {
		t.Errorf("DryPrune = %d, %v, want 20003", n, err)
	}
	s.wantPruned(s.processor, 20_003)
	const left = `select array_agg(substr(event, 8) order by event) from idem_archive`
	if diff := cmp.Diff([]string{"discarded-1", "done-1"}, queryOne[[]string](s, left)); diff != "" {
		t.Error("bodies (-want +got):\n" + diff)
	}
	s.wantPruned(s.processor, 0)
}
