package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/idemcmd"
)

func TestTheProgramReplaysWithItsHandlers(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	inbox := receiver(pool).(*idem.Inbox)
	inbox.MaxAttempts, inbox.Logger = 1, nil
	if _, err := inbox.Accept(t.Context(), asaas.Identify(asaastest.Event("PAYMENT_RECEIVED"))); err != nil {
		t.Fatal(err)
	}
	if err := inbox.Drain(t.Context()); err != nil { // there is no table yet: it is parked
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table receipts (charge_id text primary key)`); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c := idemcmd.Command{Args: []string{"replay", "-yes", "-database", url}, Stdout: &out, Receivers: []idemcmd.NewReceiver{receiver}}
	if status := c.Run(context.Background()); status != 0 || out.String() != "1 event of asaas: replayed: 1 done, 0 failed, 0 without a handler\n" {
		t.Errorf("exit status %d, %s", status, &out)
	}
}
