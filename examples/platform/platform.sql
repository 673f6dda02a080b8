create table if not exists accounts (
    scope  text primary key,
    wallet text not null unique,          -- walletId, from the answer to POST /v3/accounts
    own    boolean not null default false -- the platform's
);

create table if not exists orders (
    scope   text not null, -- the account that charges for it
    id      text not null, -- the externalReference of its charges
    paid    numeric not null default 0,
    settled numeric not null default 0,
    primary key (scope, id)
);

-- The splits of each charge, as its newest event has them.
create table if not exists charge_splits (
    scope  text not null,
    charge text not null,
    splits jsonb not null,
    at     timestamptz not null, -- of that event
    number bigint not null,
    primary key (scope, charge)
);

create or replace view splits as
select c.scope, c.charge, s.id, s.wallet, s.status, s.reason, s.given_back,
    case when s.status in ('CANCELLED', 'REFUNDED') then 0
        else s.total - s.given_back end as part -- of the wallet, if nothing else happens
from charge_splits c, jsonb_to_recordset(c.splits)
    as s(id text, wallet text, total numeric, given_back numeric, status text, reason text);

-- What the platform keeps of each charge: of its own what the splits leave, of a seller's its split.
create or replace view platform_parts as
select c.scope, c.id as charge, c.external_reference, c.value, c.net_value, c.paid,
    case when c.paid = 0 then 0
        when a.own then c.net_value - c.refunded - s.others else s.ours end as expected,
    case when a.own and c.received = 0 then 0
        when a.own then c.net_value - c.refunded - s.others else s.ours_done end as settled,
    s.blocked
from asaas_charges c
join accounts a on a.scope = c.scope
cross join lateral (
    select coalesce(sum(s.part), 0) as others,
        coalesce(sum(s.part) filter (where w.own), 0) as ours,
        coalesce(sum(s.part) filter (where w.own and s.status = 'DONE'), 0) as ours_done,
        coalesce(sum(s.part) filter (where s.status = 'BLOCKED_BY_VALUE_DIVERGENCE'), 0) as blocked
    from splits s left join accounts w on w.wallet = s.wallet
    where s.scope = c.scope and s.charge = c.id
) s
where not c.deleted;
