-- +goose Up
-- The tables of package idem: https://pkg.go.dev/github.com/paghooks/paghooks/idem
-- Plain SQL for any migration tool; running it again changes nothing.

-- One small row per event, kept for as long as the provider may send it again.
create table if not exists idem_events (
    source      text        not null, -- provider: asaas, zeltapay
    scope       text        not null, -- account or environment at the provider; '' when there is one
    id          text        not null, -- the provider's event id, or sha256:… of the body
    type        text        not null, -- the provider's event name; '' when the body cannot be read
    key         text        not null, -- the entity the event is about, such as pay_123
    state       text        not null, -- done, retrying, unhandled or failed
    attempts    integer     not null default 0, -- failed deliveries
    occurred_at timestamptz,                    -- the provider's time
    received_at timestamptz not null default now(),
    last_error  text,
    primary key (source, scope, id)
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

-- What is not done is found without reading what is.
create index if not exists idem_events_open on idem_events (source, state, received_at) where state <> 'done';

-- Pruning finds old rows by their place on disk, at next to no cost per insert.
create index if not exists idem_events_received on idem_events using brin (received_at) with (pages_per_range = 32, autosummarize = on);

-- Bodies, only while they are needed: unhandled and failed events, and done ones when the application keeps them.
create table if not exists idem_payloads (
    source text  not null,
    scope  text  not null,
    id     text  not null,
    body   bytea not null, -- as received: bytes, not text, so that no genuine body is refused
    primary key (source, scope, id)
) with (
    autovacuum_vacuum_scale_factor = 0.02
);
