package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// upgraded is the application of today on the tables and events of an earlier version.
// All of its handlers work, and send the event's id to handled.
type upgraded struct {
	*testing.T
	pool    *pgxpool.Pool
	first   *idem.Inbox // works first
	inbox   *idem.Inbox
	handled chan string
}

// eachVersion runs a test on the tables of each frozen version, which are migrated, and on those of this version as
// they would be frozen today: until the first version there are no others.
func eachVersion(t *testing.T, test func(*upgraded)) {
	t.Helper()
	t.Run("this version", func(t *testing.T) {
		t.Parallel()
		text, err := freeze(t.Context(), idemtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
		test(upgrade(t, text))
	})
	files, err := filepath.Glob("testdata/v*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			test(upgrade(t, string(text)))
		})
	}
}

func upgrade(t *testing.T, frozen string) *upgraded {
	t.Helper()
	u := &upgraded{T: t, pool: idemtest.Pool(t), handled: make(chan string, 100)}
	u.exec(frozen)
	if err := idem.Migrate(t.Context(), u.pool); err != nil {
		t.Fatal(err)
	}
	if missing, err := doctor.MissingMigrations(t.Context(), u.pool); err != nil || len(missing) > 0 {
		t.Fatalf("%q are missing after Migrate, %v", missing, err)
	}
	source := testkit.NewSource("shop")
	idem.HandleOthers(&source.Routes, func(string) bool { return true }, func(ctx context.Context, _ pgx.Tx, n *note) error {
		e, _ := idem.EventFrom(ctx)
		u.handled <- e.ID
		if n.Amount != "29.90" {
			t.Errorf("%s has the amount %q", e.ID, n.Amount)
		}
		return nil
	})
	u.first, u.inbox = idem.NewInbox(u.pool, source), idem.NewInbox(u.pool, source)
	u.first.WorkFirst = true
	u.first.Logger, u.inbox.Logger = nil, nil
	u.inbox.Workers = 1
	return u
}

func (u *upgraded) exec(sql string) {
	u.Helper()
	conn, err := u.pool.Acquire(u.Context())
	if err != nil {
		u.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Exec(u.Context(), sql).ReadAll(); err != nil {
		u.Fatal(err)
	}
}

func (u *upgraded) accept(r *idem.Inbox, e idem.Event, want idem.Outcome) {
	u.Helper()
	if outcome, err := r.Accept(u.Context(), e); outcome != want {
		u.Errorf("%s is %s, %v, want %s", e.ID, outcome, err, want)
	}
}

func (u *upgraded) replay(ids ...string) {
	u.Helper()
	sum, err := u.inbox.Replay(u.Context(), idem.Filter{IDs: ids})
	if diff := cmp.Diff(idem.Replayed{Done: len(ids)}, sum); diff != "" || err != nil {
		u.Errorf("a replay of %q, %v (-want +got):\n%s", ids, err, diff)
	}
}

func (u *upgraded) drain() {
	u.Helper()
	if err := u.inbox.Drain(u.Context()); err != nil {
		u.Error(err)
	}
}

// taken returns the events that were handled since it was last called.
func (u *upgraded) taken() (ids []string) {
	for {
		select {
		case id := <-u.handled:
			ids = append(ids, id)
		default:
			return ids
		}
	}
}

// stored returns an event as it is stored.
func (u *upgraded) stored(id string) idem.StoredEvent {
	u.Helper()
	found, err := operator.New(u.inbox, "").WithID(u.Context(), id)
	if err != nil || len(found) != 1 {
		u.Fatalf("%d events are %s, %v, want 1", len(found), id, err)
	}
	return found[0]
}

// wantDone wants handlers to have run for these events in this order, and for no others.
func (u *upgraded) wantDone(ids ...string) {
	u.Helper()
	if diff := cmp.Diff(ids, u.taken()); diff != "" {
		u.Errorf("handled events (-want +got):\n%s", diff)
	}
	for _, id := range ids {
		if s := u.stored(id); s.State != idem.StateDone {
			u.Errorf("%s is %q, want done", id, s.State)
		}
	}
}

func TestAfterAnUpgradeNoDoneOrDiscardedEventIsHandledAgain(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(u *upgraded) {
		for _, r := range []*idem.Inbox{u.first, u.inbox} {
			u.accept(r, event("done", "works", "pay_1", 1), idem.Duplicate)
			u.accept(r, event("archived", "works", "pay_2", 1), idem.Duplicate)
			u.accept(r, event("discarded", "gives up", "pay_6", 1), idem.Duplicate)
		}
		u.drain() // with what waits
		for _, id := range u.taken() {
			if id == "done" || id == "archived" || id == "discarded" {
				u.Errorf("%s is handled again", id)
			}
		}
		if s := u.stored("archived"); string(s.Payload) != body {
			u.Errorf("the archive has the body %q", s.Payload)
		}
	})
}

func TestAfterAnUpgradeWorkersGoOnWithWhatIsPendingInItsOrder(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(u *upgraded) {
		u.exec(`update idem_payloads set due_at = now() where due_at > now()`) // the one that is tried a minute later
		u.exec(`delete from idem_workers`)                                     // as any worker does after 12 seconds
		u.drain()
		var pay11, others []string
		for _, id := range u.taken() {
			if strings.HasSuffix(id, "pending") {
				pay11 = append(pay11, id)
			} else {
				others = append(others, id)
			}
		}
		slices.Sort(others)
		if diff := cmp.Diff([]string{"pending", "behind pending", "claimed", "later"}, append(pay11, others...)); diff != "" {
			u.Errorf("handled events, those of pay_11 first (-want +got):\n%s", diff)
		}
	})
}

func TestAfterAnUpgradeAnAcknowledgedEventIsAcknowledged(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(u *upgraded) {
		if u.stored("acknowledged").AcknowledgedAt.IsZero() || !u.stored("parked").AcknowledgedAt.IsZero() {
			u.Error("of the parked events, not only the one is acknowledged that was")
		}
	})
}

func TestAfterAnUpgradeStoredEventsReplay(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(u *upgraded) {
		u.replay("unhandled")
		u.replay("acknowledged")
		u.wantDone("unhandled", "acknowledged")
	})
}

func TestAfterAnUpgradeWhatWaitsBehindAParkedEventGoesOn(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(u *upgraded) {
		u.exec(`delete from idem_payloads where lane <> 'shop//pay_9'`) // what else waits
		u.replay("parked")
		u.drain()
		u.wantDone("parked", "behind parked")
	})
}

func TestAfterAnUpgradeTheAuditTrailIsThereAndGoesOn(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(u *upgraded) {
		bruno := operator.New(u.inbox, "bruno@shop")
		if plan, err := bruno.PlanReplay(u.Context(), idem.Filter{IDs: []string{"parked"}}); err != nil {
			u.Error(err)
		} else if _, err := plan.Do(u.Context(), "the order is there now"); err != nil {
			u.Error(err)
		}
		actions, err := bruno.Actions(u.Context(), 0, 10)
		if err != nil {
			u.Fatal(err)
		}
		var got []string
		for _, a := range actions {
			got = append(got, a.Actor+" "+a.Action+": "+a.Reason)
		}
		want := []string{"bruno@shop replay: the order is there now", "ana@shop acknowledge: by hand", "ana@shop discard: by hand"}
		if diff := cmp.Diff(want, got); diff != "" {
			u.Errorf("the trail (-want +got):\n%s", diff)
		}
		if on, err := bruno.ActionsOn(u.Context(), "", "discarded", 10); err != nil || len(on) != 1 {
			u.Errorf("%d actions on the discarded event, %v, want 1", len(on), err)
		}
	})
}

func TestAfterAnUpgradePruneForgetsWhatIsOldAndNothingThatIsOwed(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(u *upgraded) {
		u.exec(`
update idem_events set received_at = now() - interval '50 days';
update idem_payloads set received_at = now() - interval '50 days';
update idem_prunes set ran_at = now() - interval '60 days'`)
		for range 2 {
			if _, err := u.inbox.Prune(u.Context()); err != nil {
				u.Error(err)
			}
			u.exec(`update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`)
		}
		rows, _ := u.pool.Query(u.Context(), `select event || ' ' || state from idem_events order by event`)
		left, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			u.Fatal(err)
		}
		want := []string{
			"shop//acknowledged parked", "shop//behind parked pending", "shop//behind pending pending", "shop//claimed pending",
			"shop//later pending", "shop//parked parked", "shop//pending pending",
		}
		if diff := cmp.Diff(want, left); diff != "" {
			u.Errorf("events that are left (-want +got):\n%s", diff)
		}
	})
}
