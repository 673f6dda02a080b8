//go:build long

package promises_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Where there is much to read, that is no outage.
func TestABacklogThatTakesTooLongToReadIsNotRed(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.exec(`alter table idem_payloads rename to idem_payloads_rows`)
	s.exec(`create view idem_payloads as select * from idem_payloads_rows where (select count(*) from pg_sleep(3600)) > 0`)
	h := s.newHealth(s.first)
	h.Timeout = 5 * time.Second // enough for the query that waits for nobody
	s.wantHealth("it takes long", h, "", "")
	for _, c := range h.Report().Checks {
		if c.Name == "retrying" && !strings.Contains(c.Says, "it is not known: Postgres took too long to look: so many events are not done") {
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
	s.wantHealth("a table is locked", h, "retrying", fmt.Sprintf("or end it: select pg_terminate_backend(%d)", pid))
}
