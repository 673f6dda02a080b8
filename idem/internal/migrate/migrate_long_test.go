//go:build long

package migrate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/internal/migrate"
)

func TestTheLogNamesTheProcessThatAMigrationWaitsForOnce(t *testing.T) {
	said, s := logs(t), open(t)
	pid, end := s.read()
	migrated := make(chan error, 1)
	go func() { migrated <- migrate.Apply(context.Background(), s.pool, "", next(), patience) }()
	for range 2 { // the reader does not end until they are stored
		s.untilWaiting()
		s.store()
	}
	end()
	if err := <-migrated; err != nil {
		t.Error(err)
	}
	s.store()
	var n int
	if err := s.pool.QueryRow(t.Context(), `select count(*) from idem_events where region is null`).Scan(&n); err != nil || n != s.stored {
		t.Errorf("%d events are stored, %v, want %d", n, err, s.stored)
	}
	if line := said.String(); strings.Count(line, "level=WARN") != 1 || !strings.Contains(line, fmt.Sprintf("pid=%d table=idem_", pid)) {
		t.Errorf("the log does not name process %d, once:\n%s", pid, line)
	}
}
