create table orders (
	charge_id text primary key,
	amount    numeric not null,
	net       numeric,
	due_on    date not null,
	paid_on   date,
	viewed_at timestamptz,
	note      text
);

create table purchases (
	id      text primary key,
	paid    numeric not null default 0,
	settled numeric not null default 0 -- ship once it reaches the total
);
