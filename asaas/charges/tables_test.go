package charges_test

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
)

// A publication for all tables, as a copy to another server has it, has Postgres refuse every change of a table without
// a key.
func TestEveryTableCanBeChangedUnderAPublication(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	const publish = `do $$ begin execute 'create publication ' || quote_ident(current_schema()) || ' for table ' ||
		(select string_agg(c.oid::regclass::text, ', ') from pg_class c where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname like 'asaas\_%'); end $$`
	if _, err := pool.Exec(t.Context(), publish); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := pool.Exec(t.Context(), `do $$ begin execute 'drop publication ' || quote_ident(current_schema()); end $$`); err != nil {
			t.Error(err)
		}
	}()
	fake, client := newAccount(t)
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	know(t, pool, charge.Created())
	fake.Emit(charge.Received())
	run := gap()
	run.Apply = nil
	reconcile(t, client, pool, run) // calls Filled
	if err := charges.Apart(t.Context(), pool, "shop-1"); err != nil {
		t.Error(err)
	}
	if _, err := (&charges.Daily{Client: client, DB: pool, Apply: book}).Look(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := charges.Erase(t.Context(), pool, charge.Payment.Customer); err != nil {
		t.Error(err)
	}
	if _, err := pool.Exec(t.Context(), `select asaas_rescope('', 'shop')`); err != nil {
		t.Error(err)
	}
}

// The order of another language's text changes with the system's library, under the index: then a row is not found, and
// comes twice.
func TestNoIndexOfTextDependsOnTheSystemsLibrary(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	const found = `select string_agg(i.indexrelid::regclass || ' ' || a.attname, ', ') from pg_index i join pg_class c on c.oid = i.indrelid
		join pg_attribute a on a.attrelid = i.indexrelid join pg_collation l on l.oid = a.attcollation
		where c.relnamespace = current_schema()::regnamespace and c.relname like 'asaas\_%' and l.collname <> 'C'`
	if got := query(t, pool, found); got != "null" {
		t.Errorf("in another order than that of bytes are: %s", got)
	}
	const without = `select string_agg(c.relname, ', ') from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relname like 'asaas\_%'
		and c.relkind = 'r' and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`
	if got := query(t, pool, without); got != "null" {
		t.Errorf("without a primary key are: %s", got)
	}
}

// The column that Known compares has the database's order of text, and so has its index.
func TestUnmatchedUsesTheIndexesOfTheApplication(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if _, err := pool.Exec(t.Context(), `create table orders (id text primary key, checkout text unique); insert into orders select n::text, 'c' || n from generate_series(1, 5000) n; analyze orders`); err != nil {
		t.Fatal(err)
	}
	u := &charges.Unmatched{DB: pool, Scope: "shop-1", Known: "exists (select from orders o where o.id = c.external_reference or o.checkout = c.checkout_session)"}
	plan, err := charges.Plan(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan, "orders_pkey") {
		t.Errorf("the plan uses no index of orders:\n%s", plan)
	}
}
