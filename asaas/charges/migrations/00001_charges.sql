-- +goose Up
-- The tables of package asaas/charges: https://pkg.go.dev/github.com/paghooks/paghooks/asaas/charges
-- Plain SQL for any migration tool; running it again changes nothing. With goose: -table asaas_charges_goose_version.

-- One row for each charge at Asaas, as its newest event, or a later reading of it, has it. Amounts are in reais.
create table if not exists asaas_charges (
    scope              text    not null,         -- the account, as of idem.Event; '' when there is one
    id                 text    not null,         -- pay_...
    status             text    not null,
    value              numeric not null,         -- with the interest and the fine that were paid with it
    original_value     numeric not null,         -- without: compare orders with it
    net_value          numeric,                  -- value without Asaas's fees
    refunded           numeric not null,         -- given back
    refunding          numeric not null,         -- asked back, and not given back yet
    paid               numeric not null,         -- paid and not given back, whether its money has come or not
    received           numeric not null,         -- the part of paid whose money has come
    deleted            boolean not null,
    anticipated        boolean not null,
    billing_type       text    not null,
    created            date,
    due                date,
    credited           date,                     -- when its money comes; a returned card keeps the day
    received_on        date,                     -- when its money came; null while it has not
    customer           text    not null,         -- cus_...; '' once it is erased
    external_reference text,                     -- these six are null when they are empty
    installment        text,
    subscription       text,
    checkout_session   text,
    payment_link       text,
    pix_qr_code_id     text,
    installment_number integer not null,         -- from 1; 0 for none
    at                 timestamptz not null,     -- of the event; this and the next two say which copy is newer
    number             bigint  not null,         -- behind the & of the event's id; 0 for none, -1 for a reading
    event              text collate "C" not null, -- its id; '' for a reading
    erased             boolean not null default false,
    open               boolean not null generated always as (not deleted and (refunding > 0 or
        status not in ('RECEIVED', 'RECEIVED_IN_CASH', 'REFUNDED', 'DUNNING_RECEIVED'))) stored, -- its state will change
    primary key (scope, id)
) with (fillfactor = 90);

create index if not exists asaas_charges_reference on asaas_charges (external_reference) where external_reference is not null;
create index if not exists asaas_charges_installment on asaas_charges (installment) where installment is not null;
create index if not exists asaas_charges_subscription on asaas_charges (subscription) where subscription is not null;
create index if not exists asaas_charges_checkout on asaas_charges (checkout_session) where checkout_session is not null;
create index if not exists asaas_charges_customer on asaas_charges (customer);
create index if not exists asaas_charges_open on asaas_charges (scope, created) where open;

-- The charges that belong together, by each name that they have in common.
create or replace view asaas_charge_sums as
select scope, kind, name,
    count(*) filter (where not deleted)                       as charges,
    count(*) filter (where paid > 0)                          as paid_charges,
    coalesce(sum(value) filter (where not deleted), 0)          as value,
    coalesce(sum(original_value) filter (where not deleted), 0) as original_value,
    sum(paid) as paid, sum(received) as received, sum(refunded) as refunded, sum(refunding) as refunding, max(at) as at
from (
    select 'reference' as kind, external_reference as name, c.* from asaas_charges c where external_reference is not null
    union all select 'installment', installment, c.* from asaas_charges c where installment is not null
    union all select 'subscription', subscription, c.* from asaas_charges c where subscription is not null
    union all select 'checkout', checkout_session, c.* from asaas_charges c where checkout_session is not null
    union all select 'link', payment_link, c.* from asaas_charges c where payment_link is not null
    union all select 'qr code', pix_qr_code_id, c.* from asaas_charges c where pix_qr_code_id is not null
) named
group by scope, kind, name;

-- Since which day the table is complete: no other program has booked a charge that was made on that day or later, and has
-- no row. null is all accounts that have no row of their own here.
create table if not exists asaas_charges_since (
    scope text unique,
    since date not null
);

-- A database without events of Asaas's is taken for a new shop, complete from today on, by the calendar of Brasília. Another one
-- has charges of today that its handlers have booked: from tomorrow on.
-- +goose StatementBegin
do $$
declare
    running boolean := false;
    events regclass;
begin
    if exists (select from asaas_charges_since where scope is null) then
        return;
    end if;
    events := coalesce(nullif(current_setting('asaas_charges.events', true), '')::oid::regclass, to_regclass('idem_events')); -- MigrateSchema sets it
    if events is not null then
        execute format('select exists (select from %s where event >= ''asaas/'' and event < ''asaas0'')', events) into running;
    end if;
    insert into asaas_charges_since values (null, (now() at time zone interval '-3 hours')::date + running::int);
end
$$;
-- +goose StatementEnd

-- The last run of charges.Daily for each account.
create table if not exists asaas_charges_runs (
    scope     text primary key,
    began     timestamptz,               -- of the last one that came to its end
    unsettled timestamptz,               -- of the last one with the cards whose money is to come
    cursor    jsonb,                     -- where the next one goes on; null to begin anew
    taken     timestamptz not null       -- until then, one process is at it
);

-- The files that were applied, for charges.Migrate.
create table if not exists asaas_charges_migrations (
    version    integer     primary key,
    applied_at timestamptz not null default now()
);
insert into asaas_charges_migrations (version) values (1) on conflict do nothing;
