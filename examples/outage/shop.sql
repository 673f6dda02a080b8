-- Numbers entries without a gap: a delivery that fails takes none, and neither does a dry run.
create table ledger (entries bigint not null);
insert into ledger values (0);

-- Nothing here keeps a payment from being booked twice, or too late: that is left to idem, to show that it does.
create table entries (
    number  bigint         primary key,
    payment text           not null, -- its id at Asaas
    amount  numeric(12, 2) not null,
    day     date
);
