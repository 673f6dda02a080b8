package idem_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/operator"
)

// With PgBouncer and other poolers, pgx cannot keep prepared statements.
func TestInboxWorksInEveryQueryModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			m.inbox.KeepPayloads = true
			var fixed atomic.Bool
			m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || fixed.Load() {
					return err
				}
				return idem.NoRetry(errors.New("no such 'order' \\ $1"))
			})
			odd := letter(`it's \ $1 "odd"`, `o'1 \ $2`, 1)
			odd.Payload = append(odd.Payload, '\n')
			m.store(odd, letter("e2", "o'1 \\ $2", 2), idem.Event{ID: "e3", Payload: []byte("\x00 not JSON")})
			if o, err := m.inbox.Accept(t.Context(), odd); o != idem.Duplicate || err != nil {
				t.Errorf("Accept = %s, %v, want duplicate", o, err)
			}
			m.inbox.Workers = 1
			m.start(m.inbox)
			got := map[string]idem.Outcome{}
			for range 2 {
				o := m.next()
				got[o.Event.ID] = o.Outcome
			}
			if diff := cmp.Diff(map[string]idem.Outcome{odd.ID: idem.Parked, "e3": idem.Unhandled}, got); diff != "" {
				t.Error("outcomes (-want +got):\n" + diff)
			}
			m.wantOperations(odd)
			fixed.Store(true)
			if n, err := m.inbox.Requeue(t.Context(), idem.Filter{Keys: []string{odd.Key}}); n != 1 || err != nil {
				t.Errorf("Requeue = %d, %v, want 1", n, err)
			}
			m.wantWorked(idem.Done, idem.Done)
			if n, err := m.inbox.Discard(t.Context(), idem.Filter{IDs: []string{"e3"}}, "it's $1"); n != 1 || err != nil {
				t.Errorf("Discard = %d, %v, want 1", n, err)
			}
			m.wantEffects(2)
			m.inbox.ParkedRetention, m.inbox.PayloadRetention = time.Hour, time.Hour
			m.exec(`update idem_archive set received_at = now() - interval '10 days' where event like '%e2'`)
			m.exec(`update idem_events set received_at = now() - interval '10 days' where event like '%e2'`)
			m.exec(`update idem_events set received_at = '2020-01-01' where event not like '%e2'`)
			m.wantPruned(m.inbox, 2)
			if n := queryOne[int](m, `select count(*) from (select event from idem_payloads union all select event from idem_archive) b`); n != 0 {
				t.Errorf("%d payloads are left", n)
			}
		})
	}
}

// wantOperations looks at a parked event, one that it blocks, and an unhandled
// one.
func (m *app) wantOperations(parked idem.Event) {
	m.Helper()
	stats, err := m.inbox.Stats(m.Context())
	want := idem.Stats{
		Pending: idem.Backlog{Events: 1}, Unhandled: idem.Backlog{Events: 1}, Parked: idem.Backlog{Events: 1}, BlockedKeys: 1,
	}
	if diff := cmp.Diff(want, stats, cmpopts.IgnoreFields(idem.Backlog{}, "Oldest")); diff != "" || err != nil {
		m.Errorf("Stats: %v (-want +got):\n%s", err, diff)
	}
	for s, err := range m.inbox.List(m.Context(), idem.Filter{States: []idem.State{idem.StateParked}, Types: []string{"paid"}}) {
		want := idem.StoredEvent{Event: parked, State: idem.StateParked, Attempts: 1, LastError: `no such 'order' \ $1`}
		if diff := cmp.Diff(want, s, cmpopts.IgnoreFields(idem.StoredEvent{}, "ReceivedAt", "DueAt")); diff != "" || err != nil {
			m.Errorf("List: %v (-want +got):\n%s", err, diff)
		}
	}
	blocked, _, err := operator.New(m.inbox, "").Blocked(m.Context(), 100)
	if err != nil || len(blocked) != 1 || blocked[0].ID != parked.ID || blocked[0].Waiting != 1 {
		m.Errorf("Blocked = %+v, %v, want %s with one waiting", blocked, err, parked.ID)
	}
	if o, err := m.inbox.DryRun(m.Context(), parked); o != idem.Retrying || err == nil {
		m.Errorf("DryRun = %s, %v, want failed", o, err)
	}
}
