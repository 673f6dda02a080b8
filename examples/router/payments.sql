-- The application's own table, by its own migrations:
--
--     psql "$DATABASE_URL" -f examples/router/payments.sql
--     ASAAS_TOKEN_shop=secret go run ./examples/router

create table if not exists payments (
    account text           not null, -- an id is unique within its account
    id      text           not null,
    amount  numeric(12, 2) not null,
    primary key (account, id)
);
