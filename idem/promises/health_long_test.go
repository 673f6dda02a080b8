//go:build long

package promises_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Where there is much to read, that is no outage: health looks at a part.
func TestABacklogThatTakesTooLongToReadIsLookedAtInPart(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.exec(`insert into idem_events (event, type, key, state) select 'notes//' || n, 'paid', '', case n when 1 then 'parked' else 'pending' end from generate_series(1, 100000) n;
		insert into idem_payloads (event, source, received_at, body) select event, 'notes', now(), '' from idem_events;
		analyze idem_events; analyze idem_payloads;
		alter table idem_payloads rename to idem_payloads_rows;
		create view idem_payloads as select * from idem_payloads_rows union all select * from idem_payloads_rows where (select count(*) from pg_sleep(3600)) > 0`)
	h := s.newHealth(s.first)
	h.Timeout, h.MaxPending = 5*time.Second, 0 // enough for the looks that wait for nobody
	s.wantHealth("it takes long", h, "parked", "1 event is parked…so many events are not done, see idem stats, that this is said of 100000 of them")
	for _, c := range h.Report().Checks {
		if c.Name == "failing" && !strings.Contains(c.Says, "no event fails that nobody has acknowledged; so many events are not done") {
			t.Errorf("%+v", c)
		}
	}
	// pgx closes a connection whose statement was given up in the background.
	for deadline := time.Now().Add(patience); s.pool.Stat().AcquiredConns() != 0; pause() {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are kept", s.pool.Stat().AcquiredConns())
		}
	}
}

func TestASessionThatKeepsTheTablesLockedMakesHealthRedAndIsNamed(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	pid := s.session(`begin; lock table idem_payloads in access exclusive mode`).PgConn().PID()
	h := s.newHealth(s.first)
	h.Timeout = 5 * time.Second // in which Postgres says who that is
	s.wantHealth("a table is locked", h, "postgres", fmt.Sprintf("or end it: select pg_terminate_backend(%d)", pid))
}
