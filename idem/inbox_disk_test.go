package idem_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// The database, the role or the session may be set not to wait for the disk:
// what is acknowledged, and what is done, waits all the same.
func TestCommitsWaitForTheDiskWhateverTheDefault(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}))
	m.exec(`create table commits (n serial, what text);
		create function note_commit() returns trigger language plpgsql as $$ begin
			insert into commits (what) values (new.state || ' ' || current_setting('synchronous_commit')); return null; end $$;
		create constraint trigger note_commit after insert or update of state on idem_events
			deferrable initially deferred for each row execute function note_commit()`)
	m.on(pay)
	m.wantAnswer(paid("e1"), http.StatusOK)
	m.drain()
	for _, e := range []idem.Event{letter("e2", "o2", 0), identify([]byte(`{"id":"e3","type":"new"}`))} {
		if _, err := m.processor.Accept(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	want := []string{"pending on", "done on", "done on", "unhandled on"}
	if diff := cmp.Diff(want, queryOne[[]string](m, `select array_agg(what order by n) from commits`)); diff != "" {
		t.Error("commits, with synchronous_commit (-want +got):\n" + diff)
	}
	for range 8 { // connections go back to the pool as they were
		if got := queryOne[string](m, `select current_setting('synchronous_commit')`); got != "off" {
			t.Errorf("the setting of the session is %s now, want off", got)
		}
	}
}
