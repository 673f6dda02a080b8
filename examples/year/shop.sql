create table orders (
	id          text primary key,
	paid_at     timestamptz,
	refunded_at timestamptz
);

-- One row for each fact, however many events tell it.
create table ledger (
	charge text not null,
	fact   text not null, -- received, refunded
	amount numeric not null,
	primary key (charge, fact)
);
