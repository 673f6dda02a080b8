package idemtest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// A program that needs a Postgres, and has no set-up.
func ExampleStart() {
	ctx := context.Background()
	server, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	var answer string
	if err := conn.QueryRow(ctx, "select 'a real Postgres'").Scan(&answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	// Output: a real Postgres
}
