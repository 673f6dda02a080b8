-- The application's own table, by its own migrations:
--
--     psql "$DATABASE_URL" -f examples/router/orders.sql
--     ASAAS_TOKEN_shop=secret go run ./examples/router

create table if not exists orders (
    account text           not null, -- an id is unique within its account
    id      text           not null, -- the externalReference of its charges
    paid    numeric(12, 2) not null default 0,
    primary key (account, id)
);
