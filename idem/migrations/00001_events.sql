-- +goose Up
-- The tables of package idem: https://pkg.go.dev/github.com/paghooks/paghooks/idem
-- Plain SQL for any migration tool; running it again changes nothing.

-- One small row per event, kept for as long as the provider may send it again.
create table if not exists idem_events (
    source      text collate "C" not null, -- provider: asaas, zeltapay
    scope       text collate "C" not null, -- account or environment at the provider; '' when there is one
    id          text collate "C" not null, -- the provider's event id, or sha256:… of the body
    type        text             not null, -- the provider's event name; '' when the body cannot be read
    key         text             not null, -- the entity the event is about, such as pay_123
    state       text             not null, -- done, retrying, unhandled or failed
    received_at timestamptz      not null default now(),
    occurred_at timestamptz,               -- the provider's time
    attempts    integer          not null default 0, -- failed deliveries
    last_error  text,
    primary key (source, scope, id)
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

-- Pruning finds old rows by their place on disk, at next to no cost per insert.
create index if not exists idem_events_received on idem_events
    using brin (received_at) with (pages_per_range = 32, autosummarize = on);

-- Bodies, only while they are needed: of events that are not done, and of done ones if the application keeps them.
create table if not exists idem_payloads (
    source text collate "C" not null,
    scope  text collate "C" not null,
    id     text collate "C" not null,
    done   boolean          not null, -- as the event's state says
    body   bytea            not null, -- as received: bytes, not text, so that no genuine body is refused
    primary key (source, scope, id)
) with (
    autovacuum_vacuum_scale_factor = 0.02
);

-- What is not done is found without reading what is.
create index if not exists idem_payloads_open on idem_payloads (source, scope, id) where not done;
