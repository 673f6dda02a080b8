// Package unreferenced finds the customer of a charge that names no order. docs/charges-without-order.md explains it.
package unreferenced

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
)

// Tables are the shop's customers, orders and subscriptions, and the view that says whose each charge is. Execute it
// after charges.Migrate.
const Tables = `
create table if not exists customers (
    id  text primary key,
    cpf text not null -- or CNPJ, without dots and dashes
);
create index if not exists customers_cpf on customers (cpf);

create table if not exists orders (id text primary key, customer text not null references customers);

create table if not exists subscriptions (id text primary key, customer text not null references customers); -- sub_…

-- A person may be several customers at Asaas.
create table if not exists asaas_customers (
    id       text primary key,          -- cus_…
    customer text references customers, -- null: nobody has its CPF
    asked    timestamptz not null default now()
);

-- Charges that a person has looked at.
create table if not exists settled_by_hand (charge text primary key, note text not null, by text not null);

create or replace view charge_customers as
select c.id as charge, coalesce(o.customer, s.customer, a.customer) as customer,
    case when o.id is not null then 'order' when s.id is not null then 'subscription'
        when a.customer is not null then 'customer' end as found_by
from asaas_charges c
left join orders o on o.id = c.external_reference
left join subscriptions s on s.id = c.subscription
left join asaas_customers a on a.id = c.customer;`

// Orphans are the paid charges without a known customer: a part of health.New, and the
// accountant's list.
func Orphans(db charges.DB) *charges.Unmatched {
	return &charges.Unmatched{DB: db, Known: `
		exists (select from charge_customers k
			where k.charge = c.id and k.customer is not null)
		or exists (select from settled_by_hand h where h.charge = c.id)`}
}

// AskAsaas finds the customers of orphans by their CPF, which Asaas shows and an event does not have. Call it each day.
// It writes who the customer is, and neither stores nor returns a CPF.
func AskAsaas(ctx context.Context, pool *pgxpool.Pool, client *asaas.Client) (found int, err error) {
	const unknown = `
		select distinct c.customer from asaas_charges c
		join charge_customers k on k.charge = c.id and k.customer is null
		left join asaas_customers a on a.id = c.customer
		where c.paid > 0 and c.customer <> '' and (a.id is null or a.asked < now() - interval '20 hours') limit 100`
	rows, _ := pool.Query(ctx, unknown)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		c, err := client.Customer(ctx, id)
		if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound {
			c, err = new(asaas.Customer), nil // removed
		}
		if err != nil {
			return found, err
		}
		// Two customers with one CPF are for a person to decide.
		const learn = `
			insert into asaas_customers (id, customer)
			select $1, case when count(*) = 1 then min(id) end from customers where cpf = $2 and $2 <> ''
			on conflict (id) do update set customer = excluded.customer, asked = now()
			returning customer is not null`
		var known bool
		if err := pool.QueryRow(ctx, learn, id, plain(c.CpfCnpj.Or(""))).Scan(&known); err != nil {
			return found, fmt.Errorf("the customer %s: %w", id, err)
		}
		if known {
			found++
		}
	}
	return found, nil
}

// plain returns a CPF or CNPJ without dots and dashes; "" for one that is masked. A CNPJ may have letters.
func plain(s string) string {
	s = strings.NewReplacer(".", "", "-", "", "/", "").Replace(s)
	if strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || len(s) != 11 && len(s) != 14 {
		return ""
	}
	return s
}
