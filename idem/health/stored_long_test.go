//go:build long

package health_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/internal/testkit"
)

// Where there is much to read, that is no outage: health looks at a part.
func TestABacklogThatTakesTooLongToReadIsLookedAtInPart(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.Exec(`insert into idem_events (event, type, key, state) select 'notes//' || n, 'paid', '', case n when 1 then 'parked' else 'pending' end from generate_series(1, 100001) n;
		insert into idem_payloads (event, source, received_at, body) select event, 'notes', now(), '' from idem_events;
		analyze idem_events; analyze idem_payloads;
		alter table idem_payloads rename to idem_payloads_rows;
		create function never() returns timestamptz stable language plpgsql as $$begin perform pg_sleep(3600); return now(); end$$;
		create view idem_payloads as select event, source, received_at, occurred_at, due_at, lane,
			case when event = 'notes//100001' then never() else acknowledged_at end as acknowledged_at, failures from idem_payloads_rows`)
	h := s.NewHealth(s.First)
	h.Timeout, h.MaxPending = 10*time.Second, 0 // enough for the looks that wait for nobody
	s.WantHealth("it takes long", h, "parked", "1 event is parked…so many events are not done, see idem stats, that this is said of 100000 of them")
	for _, c := range h.Report().Checks {
		if c.Name == "failing" && !strings.Contains(c.Says, "no event fails that nobody has acknowledged; so many events are not done") {
			t.Errorf("%+v", c)
		}
	}
	// pgx closes a connection whose statement was given up in the background.
	for deadline := time.Now().Add(testkit.Patience); s.Pool.Stat().AcquiredConns() != 0; testkit.Pause() {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are kept", s.Pool.Stat().AcquiredConns())
		}
	}
}

func TestASessionThatKeepsTheTablesLockedMakesHealthRedAndIsNamed(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	pid := s.Session(`begin; lock table idem_payloads in access exclusive mode`).PgConn().PID()
	h := s.NewHealth(s.First)
	h.Timeout = 5 * time.Second // in which Postgres says who that is
	s.WantHealth("a table is locked", h, "postgres", fmt.Sprintf("or end it: select pg_terminate_backend(%d)", pid))
}
