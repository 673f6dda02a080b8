package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// The two settings that docs/recipes.md names are all that an inbox needs behind a pooler
// of transactions: its workers, their signs of life, retries and order work.
func TestAnInboxWorksBehindAPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pooler, err := pgproxy.NewPooler(t.Context(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pooler.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(withSetting(url, "default_query_exec_mode=exec"))
	if err != nil || config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeExec {
		t.Fatalf("the mode is %s, %v", config.ConnConfig.DefaultQueryExecMode, err)
	}
	config.MaxConns = 4
	pooler.Through(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := openInboxApp(t, pool)
	s.inbox.PollOnly = true
	fails := make(chan struct{}, 1)
	fails <- struct{}{}
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		select {
		case <-fails: // the first attempt
			return errors.New("no such order")
		default:
			return pay(ctx, tx, n)
		}
	})
	for range 2 {
		for _, id := range []string{"e1", "e2", "e3"} {
			s.wantAnswer(paid(id), http.StatusOK)
		}
	}
	stop := s.start(s.inbox)
	s.until(`select count(*) = 3 from idem_events where state = 'done'`)
	stop()
	s.wantEffects(3)
}

// withSetting adds a setting to a connection string of either form.
func withSetting(url, setting string) string {
	switch {
	case !strings.Contains(url, "://"):
		return url + " " + setting
	case strings.Contains(url, "?"):
		return url + "&" + setting
	}
	return url + "?" + setting
}
