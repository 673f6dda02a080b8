package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// A database whose administrator made COMMIT quick and unsafe: what is
// acknowledged is on disk all the same. A trigger at COMMIT tells.
func TestWhatIsAcknowledgedIsFlushedWhateverTheDefault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, want string }{
		{"off", "on"}, // the only setting with which COMMIT does not wait for the disk
		{"local", "local"},
		{"on", "on"},
	} {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(config *pgxpool.Config) {
				config.ConnConfig.RuntimeParams["synchronous_commit"] = c.set
			})).openInbox()
			s.exec(`create table commits (what text, setting text);
				create function note_commit() returns trigger language plpgsql as $$ begin
					if tg_op = 'INSERT' or old.state <> new.state then
						insert into commits values (tg_op || ' ' || new.state, current_setting('synchronous_commit'));
					end if;
					return null; end $$;
				create constraint trigger note_commit after insert or update on idem_events deferrable initially deferred
					for each row execute function note_commit()`)
			broken := true
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if broken && strings.HasPrefix(n.ID, "bad") {
					return errors.New("no such order")
				}
				return pay(ctx, tx, n)
			})
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
			s.wantAnswer(paid("bad1"), http.StatusServiceUnavailable)
			s.wantAnswer(paid("bad2"), http.StatusServiceUnavailable)
			s.processor.ParkAfter = 2
			s.wantAnswer(paid("bad1"), http.StatusOK)                                              // parked
			if o, err := s.inbox.Accept(t.Context(), letter("bad2", "o1", 0)); o != idem.Pending { // revived
				t.Fatal(o, err)
			}
			s.wantAnswer(`{"id":"e1","type":"paid","order":"another body"}`, http.StatusOK)      // nothing to lose
			if o, err := s.inbox.Accept(t.Context(), letter("e3", "o3", 0)); o != idem.Pending { // stored
				t.Fatal(o, err)
			}
			if o, err := s.inbox.Accept(t.Context(), letter("bad1", "o1", 0)); o != idem.Pending { // revived
				t.Fatal(o, err)
			}
			broken = false
			s.drain(3)
			s.processor.KeepPayloads = true
			s.wantAnswer(paid("e4"), http.StatusOK)
			s.wantEffects(5)

			const of = `select coalesce(array_agg(distinct setting), '{}') from commits where what = $1`
			for _, what := range []string{
				"INSERT done", "INSERT unhandled", "INSERT retrying", "INSERT pending", "UPDATE parked", "UPDATE pending", "UPDATE done",
			} {
				if got := queryOne[[]string](s, of, what); len(got) != 1 || got[0] != c.want {
					t.Errorf("%s is committed at synchronous_commit %q, want %q", what, got, c.want)
				}
			}
			if got := queryOne[string](s, `show synchronous_commit`); got != c.set {
				t.Errorf("the session's synchronous_commit has become %s", got)
			}
		})
	}
}
