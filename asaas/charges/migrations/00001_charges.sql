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

-- The statement of each account, as Asaas has it. charges.Daily copies it, and charges.Reconcile. Days are those of
-- Brasilia. Asaas's description is left out: it names people.
create table if not exists asaas_statement (
    scope        text collate "C" not null,
    id           text collate "C" not null, -- fint_...
    day          date    not null,
    type         text collate "C" not null, -- Asaas's: PAYMENT_RECEIVED, PAYMENT_FEE and more than a hundred others
    value        numeric not null,          -- below zero when money leaves the account
    balance      numeric,                   -- of the account, after it
    payment      text collate "C",          -- pay_..., these four are null for what is about none
    split        text collate "C",
    anticipation text collate "C",
    transfer     text collate "C",
    kind         text not null generated always as (case
        when type in ('PAYMENT_RECEIVED', 'PARTIAL_PAYMENT') then 'charge'
        when type in ('PAYMENT_REVERSAL', 'PAYMENT_REFUND_CANCELLED', 'REFUND_REQUEST_CANCELLED') then 'refund'
        when type in ('CHARGEBACK', 'CHARGEBACK_REVERSAL') then 'chargeback'
        when type like '%\_FEE' or type like '%\_FEE\_%'
            or type in ('FREE_PAYMENT_USE', 'PROMOTIONAL_CODE_CREDIT', 'PROMOTIONAL_CODE_DEBIT', 'CREDIT_BUREAU_REPORT') then 'fee' -- or a discount of one
        when split is not null then 'split'
        when anticipation is not null or type like 'RECEIVABLE\_ANTICIPATION\_%' then 'anticipation'
        when transfer is not null or type like 'TRANSFER%' or type like 'PIX\_TRANSACTION\_%' or type like 'INTERNAL\_TRANSFER\_%' then 'transfer'
        else 'other' end) stored,
    primary key (scope, id)
);
create index if not exists asaas_statement_day on asaas_statement (scope, day);
create index if not exists asaas_statement_payment on asaas_statement (payment) where payment is not null;

-- The days of each account's statement that are copied, without a gap.
create table if not exists asaas_statement_days (
    scope  text collate "C" primary key,
    first  date not null,
    last   date not null,          -- on which the copy was made: the day was not over
    copied timestamptz not null    -- when its last reading began
);

-- Each day on which money moved, in Asaas's own books. The balances chain the movements of a day, in whatever order they are listed: the
-- one that no movement begins with is the closing one, and the one that none ends with the opening one. A day of sum 0
-- ends as it began. whole is false where the day is no chain, or begins otherwise than the day before has ended: movements are missing.
create or replace view asaas_ledger as
with links as (
    select scope, day, amount, sum(n) as n from (
        select scope, day, balance as amount, 1 as n from asaas_statement
        union all select scope, day, balance - value, -1 from asaas_statement) both_ends
    group by scope, day, amount having sum(n) <> 0
), ends as (
    select scope, day, min(amount) filter (where n < 0) as opening, min(amount) filter (where n > 0) as closing,
        count(*) = 2 and max(abs(n)) = 1 as is_chain
    from links group by scope, day
), sums as (
    select scope, day, count(*) as movements,
        coalesce(sum(value) filter (where kind = 'charge'), 0)       as charges,
        coalesce(sum(value) filter (where kind = 'refund'), 0)       as refunds,
        coalesce(sum(value) filter (where kind = 'chargeback'), 0)   as chargebacks,
        coalesce(sum(value) filter (where kind = 'fee'), 0)          as fees,
        coalesce(sum(value) filter (where kind = 'split'), 0)        as splits,
        coalesce(sum(value) filter (where kind = 'anticipation'), 0) as anticipations,
        coalesce(sum(value) filter (where kind = 'transfer'), 0)     as transfers,
        coalesce(sum(value) filter (where kind = 'other'), 0)        as others,
        sum(value) as net, count(balance) = count(*) as has_balances
    from asaas_statement group by scope, day
), chains as (
    select s.*, has_balances and coalesce(is_chain, true) as is_chain, case when has_balances and is_chain then e.opening end as opens,
        case when has_balances and is_chain then e.closing end as closes
    from sums s left join ends e using (scope, day)
), parts as ( -- each begins with a day that has a closing balance, or is no chain; days of sum 0 follow
    select c.*, count(case when closes is not null or not is_chain then 1 end) over (partition by scope order by day) as part from chains c
), carried as (
    select p.*, first_value(closes) over (partition by scope, part order by day) as closing from parts p
), days as (
    select c.*, lag(closing) over by_day as before, lead(opens) over by_day as after from carried c window by_day as (partition by scope order by day)
)
select scope, day, movements, charges, refunds, chargebacks, fees, splits, anticipations, transfers, others, net,
    coalesce(opens, before) as opening, coalesce(closing, after) as closing,
    is_chain and (before is null or opens is null or before = opens) as whole
from days;

-- Each month. unexplained is what the balance has moved without a movement: 0 in a month that closes. whole: so are its days.
-- complete: all of its days are copied, and over.
create or replace view asaas_months as
select m.*, closing - opening - net as unexplained, coalesce(d.first <= month and d.last >= (month + interval '1 month')::date, false) as complete
from (
    select scope, date_trunc('month', day::timestamp)::date as month, sum(movements) as movements, sum(charges) as charges, sum(refunds) as refunds,
        sum(chargebacks) as chargebacks, sum(fees) as fees, sum(splits) as splits, sum(anticipations) as anticipations, sum(transfers) as transfers,
        sum(others) as others, sum(net) as net, (array_agg(opening order by day))[1] as opening, (array_agg(closing order by day desc))[1] as closing,
        bool_and(whole) as whole
    from asaas_ledger group by 1, 2
) m left join asaas_statement_days d using (scope);

-- Each charge whose money has moved, by the statement or by asaas_charges: what came less what went has to be received, over all
-- days. differs is null for a charge that cannot be judged; says tells why, and what differs.
create or replace view asaas_proof as
with moved as (
    select scope, payment as charge, coalesce(sum(value) filter (where kind = 'charge'), 0) as came, coalesce(-sum(value) filter (where kind <> 'charge'), 0) as went,
        coalesce(-sum(value) filter (where kind <> 'charge' and value < 0), 0) as went_ever, -- whether it came back or not
        bool_or(type = 'PARTIAL_PAYMENT') as partly,
        min(day) filter (where kind = 'charge') as came_on, max(day) filter (where kind <> 'charge') as went_on
    from asaas_statement where payment is not null and kind in ('charge', 'refund', 'chargeback') group by scope, payment
), pairs as (
    select coalesce(m.scope, c.scope) as scope, coalesce(m.charge, c.id) as charge, c.id is not null as has_row, c.status, c.anticipated, c.value, c.received,
        c.refunding, c.received_on, c.at, coalesce(m.came, 0) as came, coalesce(m.went, 0) as went, coalesce(m.went_ever, 0) as went_ever,
        coalesce(m.partly, false) as partly, m.came_on, m.went_on
    from moved m full join asaas_charges c on c.scope = m.scope and c.id = m.charge
    where m.charge is not null or c.received <> 0 or c.received_on is not null
), judged as (
    select p.*, d.first, case
        when d.last is null then 'the statement of the account is not copied'
        when not has_row then null
        when status = 'RECEIVED_IN_CASH' then 'it was paid in cash, which is not at Asaas'
        when anticipated then 'it is anticipated: its money came as an anticipation'
        when partly and came - went <> received then 'a part of it was paid: Asaas does not document what a charge says then'
        when status like 'DUNNING%' then 'the bureau has recovered it, and may pay less'
        when at > d.copied then 'it has changed since the statement was copied'
        when came = 0 and received_on < d.first and received <= value - went then 'its money came before the first day of the statement'
        when came = 0 and received_on >= d.last then 'its money came on the day of the last copy, which was not over'
        when came - went < received and came - went >= received - refunding then 'it is being given back: the statement has the money out, and the table has it asked back'
        when came > 0 and came - went > received and received_on is not null and value - received > went_ever
            then 'the table has more of it given back than the statement: Asaas does not document the day'
        end as why
    from pairs p left join asaas_statement_days d using (scope)
)
select scope, charge, status, value, received, came, came_on, went, went_on, case when why is null then not has_row or came - went <> received end as differs,
    coalesce(why, case when not has_row or came - went <> received then 'by the statement R$ ' || came::numeric(20, 2) || ' came and R$ ' || went::numeric(20, 2) || ' went, and the table has '
        || case when has_row then 'R$ ' || received::numeric(20, 2) || ' here' else 'no row' end else '' end) as says
from judged;

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
    lock table asaas_charges, asaas_charges_since, asaas_charges_runs, asaas_statement, asaas_statement_days in exclusive mode;
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
    delete from asaas_statement o using asaas_statement n where o.scope = was and n.scope = becomes and o.id = n.id; -- one account's, copied twice
    update asaas_statement set scope = becomes where scope = was;
    insert into asaas_statement_days as n (scope, first, last, copied) select becomes, first, last, copied from asaas_statement_days where scope = was
        on conflict (scope) do update set first = case when n.first <= excluded.last + 1 and excluded.first <= n.last + 1 then least(n.first, excluded.first)
            when excluded.last > n.last then excluded.first else n.first end, last = greatest(n.last, excluded.last),
            copied = case when excluded.last >= n.last then excluded.copied else n.copied end;
    delete from asaas_statement_days where scope = was;
end
$$;
-- +goose StatementEnd
