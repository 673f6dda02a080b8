package charges_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// A delivery that is worked on at once is one transaction, of three round trips and those of the application's own.
// The sum of an order is one more.
func TestAnEventOfAChargeIsOneTransactionOfThreeRoundTrips(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events *asaas.Dispatcher
		want   []string
	}{
		"Handler": {newEvents(book), []string{"begin; insert into idem_events", "with old as", "insert into ledger", "commit"}},
		"Orders":  {newSetting(paid), []string{"begin; insert into idem_events", "with old as", "select pg_advisory_xact_lock($1 #; select coalesce(sum(settled), 0),", "with o as", "commit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			countTrips(t, c.events, c.want)
		})
	}
}

func countTrips(t *testing.T, events *asaas.Dispatcher, want []string) {
	pool := newSetOrders(t)
	said := new(statements)
	config := pool.Config()
	config.ConnConfig.Tracer = said
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer traced.Close()
	inbox := idem.NewInbox(traced, events)
	inbox.WorkFirst = true
	first, c := newOf("order-1", asaas.BillingTypePix), newOf("order-1", asaas.BillingTypePix)
	for n, body := range [][]byte{first.Created(), c.Created(), c.Received()} {
		said.all = nil
		if outcome, err := inbox.Accept(t.Context(), asaas.Identify(body)); outcome != idem.Done || err != nil {
			t.Fatalf("%s, %v: %s", outcome, err, body)
		}
		if n == 0 { // the first charge of an account also makes the account known
			continue
		}
		if diff := cmp.Diff(want, said.all); diff != "" {
			t.Errorf("round trips (-want +got):\n%s\n%s", diff, body)
		}
	}
}

// statements notes the first words of the statements in each round trip.
type statements struct {
	mu  sync.Mutex
	all []string
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, firstWords(q.SQL))
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceBatchStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batch []string
	for _, q := range q.Batch.QueuedQueries {
		batch = append(batch, firstWords(q.SQL))
	}
	s.all = append(s.all, strings.Join(batch, "; "))
	return ctx
}

func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func firstWords(sql string) string {
	words := strings.Fields(sql)
	return strings.Join(words[:min(len(words), 3)], " ")
}
