-- +goose Up
-- The tables of package idem: https://pkg.go.dev/github.com/paghooks/paghooks/idem
-- Plain SQL for any migration tool; running it again changes nothing.

-- One small row per event, kept for as long as the provider may send it again.
create table if not exists idem_events (
    event       text collate "C" primary key,   -- source/scope/id: asaas//evt_…, asaas/shop-1/evt_…
    type        text        not null,           -- the provider's event name; '' when the body cannot be read
    key         text        not null,           -- the entity the event is about, such as pay_123
    state       text        not null,           -- done, retrying, unhandled or failed
    received_at timestamptz not null default now(),
    attempts    integer     not null default 0, -- failed deliveries
    last_error  text
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

-- Bodies, only while they are needed: of events that are not done, and of done ones if the application keeps them.
create table if not exists idem_payloads (
    event       text collate "C" primary key,
    done        boolean not null, -- as the event's state says
    occurred_at timestamptz,      -- the provider's time
    body        bytea   not null  -- as received: bytes, not text, so that no genuine body is refused
) with (
    autovacuum_vacuum_scale_factor = 0.02
);

-- What is not done is found without reading what is.
create index if not exists idem_payloads_open on idem_payloads (event) where not done;
