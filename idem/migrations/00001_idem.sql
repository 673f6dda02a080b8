-- +goose Up
-- The tables of package idem: https://pkg.go.dev/github.com/paghooks/paghooks/idem
-- Plain SQL for any migration tool; running it again changes nothing. With goose: -table idem_goose_version, else it
-- takes the first versions of your own for these, and makes no tables.

-- One small row per event, kept for as long as the provider may send it again. Only the primary key is an index of
-- every row, so that changes of state are cheap (HOT) updates.
create table if not exists idem_events (
    event         text collate "C" primary key,   -- source/scope/id: asaas//evt_..., asaas/shop-1/evt_...
    type          text        not null,           -- the provider's event name; '' when the body does not decode
    key           text        not null,           -- the entity the event is about, such as pay_123; '' for none
    state         text        not null,           -- done, pending, retrying, unhandled, parked or discarded
    received_at   timestamptz not null default now(),
    attempts      integer     not null default 0, -- that failed
    last_error    text,
    body_hash     bigint,                         -- of the body as received, to notice another body with the same id
    conflict_at   timestamptz,                    -- when another body came with this id; null is never
    starts        integer     not null default 0, -- attempts that workers have claimed: the fencing token of a claim
    crashes       integer     not null default 0, -- claims whose process died, or was cut off, since a handler returned
    claimed_at    timestamptz,                    -- when workers claimed it; null when none have
    claimed_by    bigint                          -- those workers; without a row of idem_workers they are dead
) with (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

create index if not exists idem_events_conflicts on idem_events (event) where conflict_at is not null;

-- The bodies of events that are not done, and the order in which workers take them.
create table if not exists idem_payloads (
    event       text collate "C" primary key,
    source      text collate "C" not null,
    lane        text collate "C", -- source/scope/key, or source/scope%/id without a key: whose events are processed in order,
                                  -- those that are pending or parked; null: it holds nothing back. It is retrying, unhandled,
                                  -- or parked and passed (PassParked)
    due_at      timestamptz,      -- in a lane: it may be processed from then on; null: not before it is its turn, or never
    held        boolean     not null default false, -- parked only because an earlier event of its lane is not done
    occurred_at timestamptz,      -- the provider's time
    received_at timestamptz not null,
    body        bytea not null    -- as received: bytes, not text, so that no genuine body is refused
) with (
    fillfactor = 50, -- an event that is held back stays on its page: Postgres then logs the change, not the body
    autovacuum_vacuum_scale_factor = 0.02
);

-- What workers look for next; and the order within a lane, by the provider's time and then by arrival.
create index if not exists idem_payloads_due on idem_payloads (source, due_at) where due_at is not null;
create index if not exists idem_payloads_lane
    on idem_payloads (lane, coalesce(occurred_at, received_at), received_at, event) where lane is not null;

-- What waits, of which the look for events that wait for nothing reads one of each lane; and what is parked.
create index if not exists idem_payloads_waiting on idem_payloads (source, lane) where due_at is null and lane is not null;

-- What is parked behind a parked event, and is to go on first. Not on due_at itself: Postgres would read the index above.
create index if not exists idem_payloads_held on idem_payloads (source, coalesce(due_at, 'infinity'), event) where held;

-- Rows of no source, to stay. The table is empty whenever the workers have nothing to do. Connections keep the plans that
-- Postgres makes then, and for a table of no rows it plans to read all of it, which takes seconds once there are many.
-- Settings for each statement instead cost Postgres 1.2 to 1.4 times the processor time of an attempt. idem doctor sees
-- when the rows are gone.
insert into idem_payloads (event, source, received_at, body)
select '//' || n, '', now(), convert_to(repeat(' ', 400), 'UTF8') from generate_series(1, 300) n
on conflict do nothing;

comment on table idem_payloads is 'Bodies of events that are not done. The 300 rows of source '''' are to stay: without them Postgres keeps '
    'plans that read the whole table, made while it was empty. If they are gone, idem doctor has the statement that inserts them.';

-- The bodies of events that are done, of applications that keep them.
create table if not exists idem_archive (
    event       text collate "C" primary key,
    occurred_at timestamptz,
    received_at timestamptz not null,
    body        bytea not null
);

-- Signs of life: one row per Inbox.Run that works on events, which it writes every two seconds, and deletes when it
-- ends. The others of its source delete it after eight seconds without a sign: what it has claimed is theirs then.
create table if not exists idem_workers (
    id         bigint      primary key, -- at random
    source     text        not null,
    host       text        not null,
    pid        integer     not null,
    started_at timestamptz not null,
    seen_at    timestamptz not null
) with (fillfactor = 50);

-- Bodies of 2 kB and more are compressed: by lz4 where Postgres has it (14 and later), which takes a tenth of the time.
-- +goose StatementBegin
do $$ begin
    execute 'alter table idem_payloads alter column body set compression lz4';
exception when others then null;
end $$;
-- +goose StatementEnd
