-- +goose Up
-- The tables of package asaas/charges: https://pkg.go.dev/github.com/paghooks/paghooks/asaas/charges
-- Plain SQL for any migration tool; running it again changes nothing. With goose: -table asaas_charges_goose_version.

-- One row for each charge at Asaas, as its newest event, or a later reading of it, has it. Amounts are in reais.
create table if not exists asaas_charges (
    scope              text collate "C" not null, -- the account, as of idem.Event; '' when there is one
    id                 text collate "C" not null, -- pay_...
    apart              text collate "C" not null, -- '', or the scope of an account that is apart: see asaas_charges_since
    status             text    not null,
    value              numeric not null,         -- with the interest and the fine that were paid with it
    original_value     numeric not null,         -- without: compare orders with it
    net_value          numeric,                  -- value without Asaas's fees
    refunded           numeric not null,         -- given back
    refunding          numeric not null,         -- asked back, and not given back yet
    paid               numeric not null,         -- paid and not given back, whether its money has come or not
    settled            numeric not null,         -- original_value less refunded, if something is paid
    received           numeric not null,         -- the part of paid whose money has come
    deleted            boolean not null,
    anticipated        boolean not null,
    billing_type       text    not null,
    created            date,
    due                date,
    credited           date,                     -- when its money comes; a returned card keeps the day
    received_on        date,                     -- when its money came; null while it has not
    customer           text collate "C" not null, -- cus_...; '' once it is erased
    external_reference text collate "C",         -- these six are null when they are empty
    installment        text collate "C",
    subscription       text collate "C",
    checkout_session   text collate "C",
    payment_link       text collate "C",
    pix_qr_code_id     text collate "C",
    installment_number integer not null,         -- from 1; 0 for none
    at                 timestamptz not null,     -- of the event; this and the next two say which copy is newer
    number             bigint  not null,         -- behind the & of the event's id; 0 for none, -1 for a reading
    event              text collate "C" not null, -- its id; '' for a reading
    erased             boolean not null default false,
    open               boolean not null generated always as (not deleted and (refunding > 0 or
        status not in ('RECEIVED', 'RECEIVED_IN_CASH', 'REFUNDED', 'DUNNING_RECEIVED'))) stored, -- its state will change
    primary key (id, apart) -- so a charge has one row, whatever scope it comes under
) with (fillfactor = 90);

create index if not exists asaas_charges_reference on asaas_charges (external_reference) where external_reference is not null;
create index if not exists asaas_charges_installment on asaas_charges (installment) where installment is not null;
create index if not exists asaas_charges_subscription on asaas_charges (subscription) where subscription is not null;
create index if not exists asaas_charges_checkout on asaas_charges (checkout_session) where checkout_session is not null;
create index if not exists asaas_charges_link on asaas_charges (payment_link) where payment_link is not null
    and external_reference is null and checkout_session is null and installment is null and subscription is null;
create index if not exists asaas_charges_qr_code on asaas_charges (pix_qr_code_id) where pix_qr_code_id is not null
    and external_reference is null and checkout_session is null and installment is null and subscription is null and payment_link is null;
create index if not exists asaas_charges_customer on asaas_charges (customer);
create index if not exists asaas_charges_open on asaas_charges (scope, created) where open;

-- The charges that belong together, by each name that they have in common.
create or replace view asaas_charge_sums as
select scope, kind, name,
    count(*) filter (where not deleted)                       as charges,
    count(*) filter (where paid > 0)                          as paid_charges,
    coalesce(sum(value) filter (where not deleted), 0)          as value,
    coalesce(sum(original_value) filter (where not deleted), 0) as original_value,
    sum(paid) as paid, sum(settled) as settled, sum(received) as received, sum(refunded) as refunded, sum(refunding) as refunding, max(at) as at
from (
    select 'reference' as kind, external_reference as name, c.* from asaas_charges c where external_reference is not null
    union all select 'installment', installment, c.* from asaas_charges c where installment is not null
    union all select 'subscription', subscription, c.* from asaas_charges c where subscription is not null
    union all select 'checkout', checkout_session, c.* from asaas_charges c where checkout_session is not null
    union all select 'link', payment_link, c.* from asaas_charges c where payment_link is not null
    union all select 'qr code', pix_qr_code_id, c.* from asaas_charges c where pix_qr_code_id is not null
) named
group by scope, kind, name;

-- The accounts.
create table if not exists asaas_charges_since (
    scope   text collate "C" primary key,
    since   date not null,          -- the table is complete since this day: no other program has booked a charge that was made
                                    -- on it or later, and has no row
    seen    timestamptz,            -- when its first charge was copied; null: it is only filled
    account text collate "C",       -- account.id of its events; null until one has it
    key     text collate "C",       -- the id that Asaas's API gives the account of the key, where that is another
    others  boolean,                -- other handlers have booked its payments, and the table is not filled; null until its first charge
    apart   boolean not null default false  -- its ids may be those of other accounts: sandbox beside production
);

-- The last run of charges.Daily for each account.
create table if not exists asaas_charges_runs (
    scope     text collate "C" primary key,
    since     timestamptz not null default now(), -- of the row
    began     timestamptz,               -- of the last one that copied and applied every charge
    ended     timestamptz,               -- of the last one that came to its end, whatever failed in it
    unsettled timestamptz,               -- of the last one with the cards whose money is to come
    failed    text[] not null default '{}', -- ids of charges that the last one could not copy or apply
    cursor    jsonb,                     -- where the next one goes on; null to begin anew
    taken     timestamptz not null       -- until then, one process is at it
);

-- The files that were applied, for charges.Migrate.
create table if not exists asaas_charges_migrations (
    version    integer     primary key,
    applied_at timestamptz not null default now(),
    complete   date        not null -- the first day since when the table may be complete, by the calendar of Brasilia
);

-- A database without events of Asaas's is taken for a new shop, complete from today on. Another one
-- has charges of today that its handlers have booked: from tomorrow on.
-- +goose StatementBegin
do $$
declare
    running boolean := false;
    events regclass;
begin
    events := coalesce(nullif(current_setting('asaas_charges.events', true), '')::oid::regclass, to_regclass('idem_events')); -- MigrateSchema sets it
    if events is not null then
        execute format('select exists (select from %s where event >= ''asaas/'' and event < ''asaas0'')', events) into running;
    end if;
    insert into asaas_charges_migrations (version, complete)
    values (1, (now() at time zone interval '-3 hours')::date + running::int) on conflict do nothing;
end
$$;
-- +goose StatementEnd

-- idem rescope calls it in the transaction that moves the events of an account to another scope. Scopes are not escaped here.
-- +goose StatementBegin
create or replace function asaas_rescope(was text, becomes text) returns void language plpgsql as $$
declare
    names text;
begin
    lock table asaas_charges, asaas_charges_since, asaas_charges_runs in exclusive mode;
    select o.account || ' and ' || n.account into names from asaas_charges_since o, asaas_charges_since n
        where o.scope = was and n.scope = becomes and o.account <> n.account;
    if names is not null then
        raise exception 'the scopes "%" and "%" are those of two accounts at Asaas, %: they stay apart', was, becomes, names;
    end if;
    select string_agg(id, ', ') into names from (select id from asaas_charges o join asaas_charges n using (id)
        where o.scope = was and n.scope = becomes order by id limit 5) both_have;
    if names is not null then
        raise exception 'charges are known under both of the scopes "%" and "%", so they may have been booked twice: %: put right what was booked, '
            'and delete one of the two rows of each from asaas_charges', was, becomes, names;
    end if;
    insert into asaas_charges_since as n (scope, since, seen, account, key, others, apart)
        select becomes, since, seen, account, key, others, apart from asaas_charges_since where scope = was
        on conflict (scope) do update set since = least(n.since, excluded.since), seen = least(n.seen, excluded.seen), account = coalesce(n.account, excluded.account),
            key = coalesce(n.key, excluded.key), others = n.others or excluded.others, apart = n.apart or excluded.apart;
    delete from asaas_charges_since where scope = was;
    update asaas_charges c set scope = becomes, apart = case when s.apart then becomes else '' end from asaas_charges_since s
        where s.scope = becomes and (c.scope = was or c.scope = becomes and (c.apart <> '') <> s.apart);
    insert into asaas_charges_runs as n (scope, since, began, ended, unsettled, failed, taken)
        select becomes, since, began, ended, unsettled, failed, now() from asaas_charges_runs where scope = was
        on conflict (scope) do update set began = null, unsettled = null, cursor = null, taken = now(); -- it begins anew
    delete from asaas_charges_runs where scope = was;
end
$$;
-- +goose StatementEnd
