//go:build long && !race

package promises_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/idem/oncall/idemcmd"
	"github.com/paghooks/paghooks/internal/command"
)

// Every commit waits for it, and nothing else looks wrong. The role of an application sees no replica.
func TestASynchronousReplicaThatIsAwayIsSaidByName(t *testing.T) {
	t.Parallel()
	server := startCluster(t)
	admin := connectTo(t, server.URL())
	for _, sql := range []string{`create role shop login`, `create schema shop authorization shop`} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	pool := openPool(t, server.URL(), func(c *pgxpool.Config) { c.ConnConfig.User = "shop" })
	s := openInboxApp(t, pool)
	s.Store(letter("e1", "o1", 1))
	alter(t, server, "synchronous_standby_names", "backup_site", `select current_setting('synchronous_standby_names') = 'backup_site'`)
	t.Cleanup(func() { // else no session ends
		_, _ = admin.Exec(context.Background(), `alter system set synchronous_standby_names = ''`)
		_, _ = admin.Exec(context.Background(), `select pg_reload_conf()`)
	})
	acting := func() (int, string) {
		var out strings.Builder
		url := strings.Replace(server.URL(), "postgres@", "shop@", 1)
		c := idemcmd.Command{Args: []string{"requeue", "-database", url, "-yes", "-reason", "x", "-without-workers", "-state", "pending"}, Stdout: &out, Stderr: &out}
		return c.Run(t.Context()), out.String()
	}
	start := time.Now()
	if status, said := acting(); status != command.Failed || !strings.Contains(said, "backup_site") || !strings.Contains(said, "it is not known whether this is done") {
		t.Errorf("while nobody else waits, it ends with %d:\n%s", status, said)
	}
	if d := time.Since(start); d > patience {
		t.Errorf("it took %s", d)
	}
	s.WantHealth("a commit waits", s.NewHealth(s.Inbox), "postgres", "commits wait for the synchronous replica, and it does not answer: synchronous_standby_names is backup_site")
	found, err := doctor.Check(t.Context(), pool, s.Inbox)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Severity == doctor.Error }); i != 0 || found[0].Check != "replication" || !strings.Contains(found[0].Evidence, "backup_site") {
		t.Errorf("it finds %v", found)
	}
	if status, said := acting(); status != command.Failed || !strings.Contains(said, "nothing was changed: commits wait") {
		t.Errorf("it ends with %d:\n%s", status, said)
	}
	if outcome, err := s.Inbox.Accept(t.Context(), idem.Event{ID: "e2", Type: "paid"}); outcome.Acknowledged() {
		t.Errorf("a delivery is %s, %v", outcome, err)
	}
}
