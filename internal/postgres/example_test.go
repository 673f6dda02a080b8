package postgres_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/internal/postgres"
)

// What was committed is there after a crash.
func ExampleCluster() {
	ctx := context.Background()
	cluster := &postgres.Cluster{Durable: false} // commits do not wait for the disk
	if err := cluster.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	pool, err := pgxpool.New(ctx, cluster.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "create table orders as select 1 as id"); err != nil {
		log.Fatal(err)
	}
	if err := cluster.Crash(ctx); err != nil {
		log.Fatal(err)
	}
	if err := cluster.Start(ctx); err != nil {
		log.Fatal(err)
	}
	pool.Reset() // its connections are broken
	var n int
	if err := pool.QueryRow(ctx, "select count(*) from orders").Scan(&n); err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "order")
	// Output: 1 order
}

// A replica takes over.
func ExampleCluster_Replica() {
	ctx := context.Background()
	var primary postgres.Cluster
	if err := primary.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer primary.Close()
	replica, err := primary.Replica(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer replica.Close()

	const order = "create table orders as select 1 as id"
	if err := execute(ctx, primary.URL(), order); err != nil {
		log.Fatal(err)
	}
	if err := replica.CatchUp(ctx, &primary); err != nil {
		log.Fatal(err)
	}
	if err := primary.Crash(ctx); err != nil {
		log.Fatal(err)
	}
	if err := replica.Promote(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(execute(ctx, replica.URL(), "insert into orders values (2)"))
	// Output: <nil>
}

func execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}
