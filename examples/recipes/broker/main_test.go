package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/internal/postgres"
)

func TestEachOrderIsPaidOnceAndToldThoughTheDatabaseCrashes(t *testing.T) {
	t.Parallel()
	var database postgres.Cluster
	if err := database.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	var told, paid []string
	err := serve(t.Context(), database.URL(), func(account *asaastest.Fake, shipped <-chan string) {
		hear := func(n int) {
			for range n {
				told = append(told, <-shipped)
			}
		}
		pay(account, "order-1", "order-2")
		hear(2)
		if err := database.Crash(t.Context()); err != nil {
			t.Error(err)
		}
		pay(account, "order-3", "order-4")
		for _, e := range account.Timeline() {
			if e.Kind == asaastest.Failed {
				t.Errorf("Postgres is down: %v", e)
			}
		}
		if err := database.Start(t.Context()); err != nil {
			t.Error(err)
		}
		hear(2)
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), database.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), `select external_reference from asaas_charges where paid > 0 order by 1`)
	if paid, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	slices.Sort(told)
	want := []string{"order-1", "order-2", "order-3", "order-4"}
	if diff := cmp.Diff([][]string{want, want}, [][]string{paid, told}); diff != "" {
		t.Errorf("the orders that are paid, and told (-want +got):\n%s", diff)
	}
}

func TestProgramEndsByItself(t *testing.T) {
	t.Parallel()
	if err := run(t.Context()); err != nil {
		t.Error(err)
	}
}
