//go:build long

package idemsql_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// A handler of database/sql under the crash kit: its connection is cut at every
// message to Postgres, in a transaction of its own and beside it.
func TestExactlyOnceHoldsForHandlersOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	source := func(pool *pgxpool.Pool) idem.Source {
		const tables = `create table balances (customer text, payments int); insert into balances values ('cus_1', 0)`
		if _, err := pool.Exec(t.Context(), tables); err != nil {
			t.Fatal(err)
		}
		return &noteRoutes{work: work(addPayment)}
	}
	check := func(ctx context.Context, pool *pgxpool.Pool) error {
		var payments int
		err := pool.QueryRow(ctx, `select payments from balances`).Scan(&payments)
		if err == nil && payments != 2 {
			err = fmt.Errorf("the balance holds %d payments, want 2", payments)
		}
		return err
	}
	deliveries := []*http.Request{httptest.NewRequest(http.MethodPost, "/", strings.NewReader("evt_1"))}
	t.Run("inline", func(t *testing.T) { idemtest.ExactlyOnce(t, source, deliveries, check) })
	t.Run("inbox", func(t *testing.T) { idemtest.ExactlyOnceInbox(t, source, deliveries, check) })
}
