package main

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// It does not run in parallel: others have schemas meanwhile.
func TestEveryModeLosesAndDoublesNothing(t *testing.T) {
	pool := idemtest.Pool(t)
	var out strings.Builder
	args := strings.Fields("-events 100 -warm 10 -rounds 2 -at 8 -conns 4 -duplicates 20% -concurrent 10% -json -postgres")
	if status := run(t.Context(), append(args, pool.Config().ConnString()), &out, t.Output()); status != 0 {
		t.Fatalf("the status is %d\n%s", status, out.String())
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Modes) != len(allModes) || !r.Correct || r.Interrupted || len(r.Ratios) != 5 {
		t.Errorf("reported: %s", out.String())
	}
	for _, m := range r.Modes {
		if !m.Checked || m.Events < 100 || m.Not200 != 0 || m.P50 <= 0 || m.P50 > m.P99 || m.P999 > m.Max || m.Trips <= 0 || m.HeapLast <= 0 {
			t.Errorf("%s: %+v", m.Mode, m)
		}
	}
	var left []string
	if err := pool.QueryRow(t.Context(), `select array_agg(nspname::text) from pg_namespace where starts_with(nspname, $1)`, schemaPrefix).Scan(&left); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// shop is an implementation that is not ours, which may be wrong on purpose.
func shop(t *testing.T, work func(ctx context.Context, tx pgx.Tx, e *handEvent) error) (url string, pool *pgxpool.Pool) {
	t.Helper()
	pool = idemtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `create table payments (charge text, cents bigint)`); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, _, ok := receive(w, r, "the shop's"); ok {
			answer(w, pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) error { return work(r.Context(), tx, e) }))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, pool
}

func insert(ctx context.Context, tx pgx.Tx, e *handEvent) error {
	amount := int64(math.Round(e.Payment.Value * 100))
	_, err := tx.Exec(ctx, `insert into payments values ($1, $2)`, e.Payment.ID, amount)
	return err
}

func TestALostOrDoubledEffectFailsTheRun(t *testing.T) {
	t.Setenv(tokenVariable, "the shop's")
	var works atomic.Int64
	for _, tt := range []struct {
		why, flags string
		work       func(context.Context, pgx.Tx, *handEvent) error
		status     int
		says       string
	}{
		{"it does what each delivery says, and each comes once", "-duplicates 0% -concurrent 0%", insert, 0, "right"},
		{"duplicates have an effect", "-duplicates 20% -concurrent 0%", insert, 1, "WRONG"},
		{"concurrent copies have an effect", "-duplicates 0% -concurrent 20%", insert, 1, "WRONG"},
		{"one effect is lost", "-duplicates 0% -concurrent 0%", func(ctx context.Context, tx pgx.Tx, e *handEvent) error {
			if works.Add(1) == 20 {
				return nil
			}
			return insert(ctx, tx, e)
		}, 1, "1 charges have lost or doubled payments"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			url, pool := shop(t, tt.work)
			var out strings.Builder
			args := append(strings.Fields("-events 60 -warm 0 -rounds 2 -at 4 -late 0s "+tt.flags), "-against", url,
				"-postgres", pool.Config().ConnString(), "-ledger", "select charge, count(*), sum(cents) from payments group by 1")
			if status := run(t.Context(), args, &out, t.Output()); status != tt.status || !strings.Contains(out.String(), tt.says) {
				t.Errorf("the status is %d, want %d; it says:\n%s", status, tt.status, out.String())
			}
		})
	}
}

func TestNoSecretOfAnAddressIsReported(t *testing.T) {
	t.Parallel()
	var out, said strings.Builder
	if status := run(t.Context(), []string{"-against", "http://u:secret@127.0.0.1:1/?token=secret"}, &out, &said); status != 1 || strings.Contains(said.String()+out.String(), "secret") {
		t.Errorf("the status is %d; it says %s%s", status, out.String(), said.String())
	}
}

func TestAReceiverThatRefusesTheFirstEventIsExplained(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var out, said strings.Builder
	if status := run(t.Context(), []string{"-against", server.URL}, &out, &said); status != 1 || !strings.Contains(said.String(), "ASAAS_WEBHOOK_TOKEN: it answered 404 Not Found") || out.Len() > 0 {
		t.Errorf("the status is %d; it says %s%s", status, out.String(), said.String())
	}
}

// canceller ends the run when it has made progress.
type canceller struct {
	said   strings.Builder
	cancel context.CancelFunc
}

func (c *canceller) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "round 2 of") {
		c.cancel()
	}
	return c.said.Write(p)
}

func TestAnInterruptedRunReportsWhatThereIs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	progress := &canceller{cancel: cancel}
	var out strings.Builder
	args := []string{"-mode=inline,inbox", "-events=1000000", "-rounds=50000", "-warm=5", "-at=4", "-conns=4", "-postgres", idemtest.URL(t)}
	if status := run(ctx, args, &out, progress); status != 0 {
		t.Errorf("the status is %d: %s%s", status, out.String(), progress.said.String())
	}
	for _, says := range []string{"inbox end to end to inline: ", "ledger +right +right", "it was interrupted"} {
		if !regexp.MustCompile(says).MatchString(out.String()) {
			t.Errorf("%q is not in the report:\n%s", says, out.String())
		}
	}
}

func TestMistakesHaveAStatusOfTheirOwn(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if status := run(t.Context(), []string{"-at", "none"}, &out, t.Output()); status != 2 || out.Len() > 0 {
		t.Errorf("the status of a mistake is %d", status)
	}
	if status := run(t.Context(), []string{"-h"}, &out, t.Output()); status != 0 {
		t.Errorf("the status of -h is %d", status)
	}
}
