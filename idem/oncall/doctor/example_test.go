package doctor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
)

func ExampleCheck() {
	ctx := context.Background()
	server, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	inbox := idem.NewInbox(pool, asaas.NewDispatcher("the-token-of-the-webhook"))
	inbox.Retention.Events = 7 * 24 * time.Hour

	findings, err := doctor.Check(ctx, pool, inbox)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		if f.Check == "retention" {
			fmt.Println(f)
		}
	}
	// Output:
	// error: events are forgotten while a provider may still deliver them again: those would run twice (Retention is 7 days, a provider may take 31 days): set Retention to 45 days
}
