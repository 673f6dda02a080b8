-- +goose Up
-- What package idem's inbox needs: events that are stored first, and worked on later, in order.
-- Plain SQL for any migration tool; running it again changes nothing.

-- Events may be pending now, too, or discarded.
alter table idem_events
    add column if not exists due_at     timestamptz, -- pending: not to be worked on before; null is now
    add column if not exists crashes    integer;     -- workers that died with it; null is none

-- The state changes with every pending event. In a page with room for that, its index need not change.
alter table idem_events set (fillfactor = 90);

-- The events that workers have taken, and those that they died with. Not logged: a crash of Postgres ends all work.
create unlogged table if not exists idem_claims (
    event text collate "C" primary key,
    until timestamptz not null -- by then the worker has begun, and holds the event's row, or it is dead
);

-- The order of work: one queue per entity, such as asaas//pay_123, each by the provider's time and then arrival.
alter table idem_payloads
    add column if not exists queue       text collate "C", -- null: not for workers
    add column if not exists received_at timestamptz;

create index if not exists idem_payloads_queue
    on idem_payloads (queue, coalesce(occurred_at, received_at), received_at) where queue is not null;

-- A payload that waits for its work is found by its queue, any other by its event: each has one index to be written
-- to. That leaves no primary key, which logical replication is told.
create unique index if not exists idem_payloads_event on idem_payloads (event) where queue is null;
alter table idem_payloads drop constraint if exists idem_payloads_pkey;
alter table idem_payloads replica identity full;

-- Events that are not done, and not for workers, are found without reading what is done.
drop index if exists idem_payloads_open;
create index if not exists idem_payloads_kept on idem_payloads (event) where not done and queue is null;

-- Bodies of 2 kB and more are compressed: by lz4 where Postgres has it (14 and later), which takes a tenth of the time.
-- +goose StatementBegin
do $$ begin
    execute 'alter table idem_payloads alter column body set compression lz4';
exception when others then null;
end $$;
-- +goose StatementEnd
