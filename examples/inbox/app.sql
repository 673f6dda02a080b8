create table payments (
    id      text primary key,
    history text[] not null -- its events, as they were worked on
);

-- Nothing here keeps a payment from being booked twice: the inbox does.
create table ledger (
    payment text           not null,
    amount  numeric(12, 2) not null
);
