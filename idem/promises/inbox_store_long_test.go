//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Many arrive while one is being stored.
func TestDeliveriesThatArriveMeanwhileShareTheNextStatement(t *testing.T) {
	t.Parallel()
	big := make([]byte, 3<<19) // 1.5 MiB
	for name, c := range map[string]struct {
		payload  []byte
		arriving int
		want     []int
	}{
		"all in one":         {[]byte("{}"), 40, []int{1, 40}},
		"no more than 256":   {[]byte("{}"), 300, []int{1, 256, 44}},
		"no more than 4 MiB": {big, 3, []int{1, 2, 1}},
		"one that is larger than that goes alone": {make([]byte, 5<<20), 2, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.countBatches()
			var arriving []idem.Event
			for n := range c.arriving {
				arriving = append(arriving, idem.Event{ID: fmt.Sprint(n), Type: "paid", Payload: c.payload})
			}
			m.storeTogether(arriving...)
			m.wantBatches(c.want...)
		})
	}
}

// All deliveries of an inbox are stored by one goroutine, and all of one event wait for the first one.
func TestDeliveriesGoOnBehindAHookOfThePoolThatHangs(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]func(*app) func(context.Context, idem.Event) (idem.Outcome, error){
		"an inbox":    func(s *app) func(context.Context, idem.Event) (idem.Outcome, error) { return s.Inbox.Accept },
		"works first": func(s *app) func(context.Context, idem.Event) (idem.Outcome, error) { return s.First.Accept },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hangs atomic.Bool
			goOn := make(chan bool)
			s := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
					if hangs.CompareAndSwap(true, false) {
						<-goOn
					}
					return true, nil
				}
			}))
			t.Cleanup(func() { close(goOn) }) // before the pool is closed
			s.Inbox.PollOnly = true
			s.On(pay)
			hangs.Store(true)
			if o, err := accept(s)(t.Context(), letter("e1", "o1", 1)); o != idem.Retrying || err == nil {
				t.Errorf("the delivery that the hook holds up is %s, %v, want retrying", o, err)
			}
			if o, err := accept(s)(t.Context(), letter("e1", "o1", 1)); !o.Acknowledged() {
				t.Errorf("the next delivery is %s, %v", o, err)
			}
		})
	}
}

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
			s.Exec(`create table commits (what text, setting text);
				create function note_commit() returns trigger language plpgsql as $$ begin
					if tg_op = 'INSERT' or old.state <> new.state then
						insert into commits values (tg_op || ' ' || new.state, current_setting('synchronous_commit'));
					end if;
					return null; end $$;
				create constraint trigger note_commit after insert or update on idem_events deferrable initially deferred
					for each row execute function note_commit()`)
			broken := true
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if broken && strings.HasPrefix(n.ID, "bad") {
					return errors.New("no such order")
				}
				return pay(ctx, tx, n)
			})
			s.Inbox.MaxAttempts = 1
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
			s.WantAnswer(`{"id":"odd","type":"paid","order":7}`, http.StatusOK) // parked
			s.Store(letter("bad1", "o1", 0), letter("bad2", "o2", 0))
			s.Drain(2)
			s.WantAnswer(`{"id":"e1","type":"paid","order":"another body"}`, http.StatusOK) // nothing to lose
			s.Store(letter("bad1", "o1", 0))                                                // revived
			broken = false
			s.Drain(1)
			s.WantReplayed(idem.Filter{IDs: []string{"bad2"}}, idem.Replayed{Done: 1})
			s.First.KeepPayloads = true
			s.WantAnswer(about("e4", "paid", "o4"), http.StatusOK)
			s.WantEffects(4)
			old := func(yield func(operator.OldEvent, error) bool) {
				_ = yield(operator.OldEvent{ID: "old", Type: "paid", Done: true}, nil) && yield(operator.OldEvent{ID: "new", Type: "new", Done: true}, nil)
			}
			if sum, err := operator.New(s.Inbox, "ana").Import(t.Context(), "", old, "a test"); sum.Stored != 1 || sum.Completed != 1 || err != nil {
				t.Errorf("Import = %+v, %v", sum, err)
			}

			const of = `select coalesce(array_agg(distinct setting), '{}') from commits where what = $1`
			for _, what := range []string{
				"INSERT done", "INSERT unhandled", "INSERT pending", "INSERT parked", "UPDATE pending", "UPDATE done",
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
