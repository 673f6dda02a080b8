-- +goose Up
-- For whoever is on call: when an event was done, and how its last attempts failed.

-- When the attempt began that processed an event which was stored before; null: it was done as it came, at received_at.
alter table idem_events add column if not exists done_at timestamptz;

-- The provider's time, as in idem_payloads, for as long as the row is kept: whether one event was done after a later one.
alter table idem_events add column if not exists occurred_at timestamptz;

-- The last five attempts that failed, the oldest first: [{"at": ..., "error": ...}]. It is written when one fails, and goes
-- with the body: an event that does not fail never has one.
alter table idem_payloads add column if not exists failures jsonb;

-- An action that runs: its process writes seen_at every two seconds, and ends it when somebody asks for that.
alter table idem_audit add column if not exists seen_at timestamptz not null default now();
alter table idem_audit add column if not exists stopped_by text; -- who asked

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
