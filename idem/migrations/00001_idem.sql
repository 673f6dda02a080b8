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
    state         text        not null,           -- done, pending, unhandled, parked or discarded
    received_at   timestamptz not null default now(),
    attempts      integer     not null default 0, -- that failed
    last_error    text,
    body_hash     bigint,                         -- of the body as received, to notice another body with the same id
    conflict_at   timestamptz,                    -- when another body came with this id; null is never
    starts        integer     not null default 0, -- attempts that were claimed: the fencing token of a claim
    crashes       integer     not null default 0, -- claims whose process died, or was cut off, since a handler returned
    claimed_at    timestamptz,                    -- when workers claimed it; null when none have
    claimed_by    bigint,                         -- those workers; without a row of idem_workers they are dead
    done_at       timestamptz,                    -- when the attempt began that processed an event which was stored before;
                                                  -- null: it was done as it came, at received_at
    occurred_at   timestamptz                     -- the provider's time, for as long as the row is kept: whether one event
                                                  -- was done after a later one
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
                                  -- those that are pending or parked; null: it holds nothing back. It is unhandled, or parked
                                  -- and passed (PassParked)
    due_at      timestamptz,      -- in a lane: it may be processed from then on; null: not before it is its turn, or never
    occurred_at timestamptz,      -- the provider's time
    received_at timestamptz not null,
    body        bytea not null,   -- as received: bytes, not text, so that no genuine body is refused
    trace       text,             -- names the trace of the delivery that stored it, such as a traceparent; null without tracing
    failures    jsonb,            -- the last five attempts that failed, the oldest first: [{"at": ..., "error": ...}]. It is
                                  -- written when one fails: an event that does not fail never has one
    acknowledged_at timestamptz   -- when a person took note of its failure, and health is red for it no more. Of a parked event
                                  -- it counts until the event fails again, of one that is tried again until that is parked
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

-- What Prune has seen, one row per source: only so can it tell events that came long ago from those that came while the
-- clock was wrong. Without its row Prune begins anew, and forgets nothing before the day after.
create table if not exists idem_prunes (
    source    text collate "C" primary key,
    runs      bigint      not null,
    ran_at    timestamptz not null, -- the latest run that came a day after another
    before_at timestamptz,          -- the run before that
    days      jsonb       not null  -- by the date of arrival: how many events Prune has left, and when there were suddenly more
);

-- Signs of life: one row per Inbox.Run or Replay, which it writes every two seconds, and deletes when it
-- ends. The others of its source delete it after eight seconds without a sign: what it has claimed is theirs then.
create table if not exists idem_workers (
    id         bigint      primary key, -- at random
    source     text        not null,
    host       text        not null,
    pid        integer     not null,
    started_at timestamptz not null,
    seen_at    timestamptz not null,
    replays    boolean     not null default false -- it is a Replay, and takes no event that is due
) with (fillfactor = 50);

-- The events that workers leave alone until a time, because a person has decided so: idem pause. Claims and first tries read
-- them. A row is deleted once its time is over.
create table if not exists idem_pauses (
    source   text collate "C" not null,
    type     text collate "C" not null, -- '' is every type
    key      text collate "C" not null, -- the entity; '' is every one
    until    timestamptz not null, -- the time that the events are put off to
    at       timestamptz not null default now(),
    actor    text        not null, -- who, as the application says
    reason   text        not null,
    ended_at timestamptz,          -- when a person ended it; null while it lasts
    primary key (source, type, key, until)
);

-- The failing checks of package health that a health.Notifier tells somebody, one row each, until somebody knows that it is
-- over: so that of many processes one tells.
create table if not exists idem_notices (
    source   text collate "C" not null,
    name     text collate "C" not null, -- of the check: postgres, parked, ...
    since_at timestamptz not null,
    seen_at  timestamptz not null, -- when a process last saw it fail
    told_at  timestamptz,          -- null: nobody knows
    until    timestamptz,          -- the end of the minute of the process that tells it; null when it has
    primary key (source, name)
);

-- One row per action of a person. Prune deletes old ones: see Retention.Audit.
create table if not exists idem_audit (
    id         bigint      primary key, -- from 1: of no sequence, since a copy by logical replication would begin it anew
    at         timestamptz not null default now(),
    actor      text        not null, -- who, as the application says
    action     text        not null, -- what: replay, requeue, discard, reveal, ...
    source     text        not null,
    filter     text        not null, -- which events were chosen, as people read it
    reason     text        not null,
    events     text[]      not null, -- those that were chosen: source/scope/id
    result     text,                 -- as long as it has not ended: how far a replay has come
    ended_at   timestamptz,          -- null while it is running, or if its process died
    seen_at    timestamptz not null default now(), -- its process writes it every two seconds, and ends when somebody asks for that
    stopped_by text                  -- who asked
);

-- What an action has done to each event, as soon as it has: a process that dies leaves the lines of what it did.
create table if not exists idem_audit_events (
    action bigint      not null references idem_audit on delete cascade,
    event  text collate "C" not null, -- source/scope/id
    result text        not null, -- done, failed, unhandled or left of a replay; requeued, discarded, erased, acknowledged
    at     timestamptz not null default now(),
    primary key (event, action)
);

create index if not exists idem_audit_events_action on idem_audit_events (action);

-- What support staff reads: one line per event, without its body. With this right on it, and none on the tables:
--   grant select on idem_event_log to support;
create or replace view idem_event_log as
select split_part(e.event, '/', 1) as source,
       split_part(e.event, '/', 2) as scope, -- escaped as in a URL's path
       substring(e.event from '^[^/]*/[^/]*/(.*)$') as event_id,
       e.type, e.key as entity, e.state, e.attempts, e.crashes, e.last_error,
       e.received_at, p.occurred_at, p.due_at, e.claimed_at, w.host, w.pid, e.conflict_at,
       case e.state when 'done' then coalesce(e.done_at, e.received_at) end as done_at, p.failures
from idem_events e left join idem_payloads p using (event) left join idem_workers w on w.id = e.claimed_by;

-- Bodies of 2 kB and more are compressed: by lz4 where Postgres has it (14 and later), which takes a tenth of the time.
-- +goose StatementBegin
do $$ begin
    execute 'alter table idem_payloads alter column body set compression lz4';
exception when others then null;
end $$;
-- +goose StatementEnd
