create table orders (
    id          text primary key,
    total       numeric(12, 2) not null,
    currency    text not null,
    charge      text, -- its payment's id at Asaas
    -- One column per fact instead of one status: events may come in any order, and none takes away what another said.
    overdue_at  timestamptz,
    paid_at     timestamptz,
    refunded_at timestamptz
);

-- A ledger per currency. Its entries are numbered without a gap.
create table ledgers (
    currency text primary key,
    entries  bigint not null default 0
);

-- Money that came in or, negative, went back. The order is no foreign key: money for an order that is not here is money.
create table entries (
    currency text           not null references ledgers,
    number   bigint         not null,
    order_id text,          -- null: nobody asked for this money
    payment  text           not null, -- the charge at Asaas, the link at Zelta Pay
    kind     text           not null, -- received or refunded
    amount   numeric(12, 2) not null,
    day      date,
    primary key (currency, number),
    unique (payment, kind) -- however many events say so: a won chargeback's, or both layouts' of Zelta Pay
);
