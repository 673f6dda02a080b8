-- +goose Up
-- For whoever runs the application: traces from an attempt back to its delivery, and who did what by hand.

-- What names the trace of the delivery that stored an event, such as a traceparent; null without tracing.
alter table idem_payloads add column if not exists trace text;

-- What Prune has seen, one row per source: only so can it tell events that came long ago from those that came while the
-- clock was wrong. Without its row Prune begins anew, and forgets nothing before the day after.
create table if not exists idem_prunes (
    source    text collate "C" primary key,
    runs      bigint      not null,
    ran_at    timestamptz not null, -- the latest run that came a day after another
    before_at timestamptz,          -- the run before that
    days      jsonb       not null  -- by the date of arrival: how many events Prune has left, and when there were suddenly more
);

-- One row per action of a person. Prune deletes old ones: see AuditRetention.
create table if not exists idem_audit (
    id       bigint generated always as identity primary key,
    at       timestamptz not null default now(),
    actor    text        not null, -- who, as the application says
    action   text        not null, -- what: replay, requeue, discard, reveal, ...
    source   text        not null,
    filter   text        not null, -- which events were chosen, as people read it
    reason   text        not null,
    events   text[]      not null, -- those that were chosen: source/scope/id
    result   text,                 -- as long as it has not ended: how far a replay has come
    ended_at timestamptz           -- null while it is running, or if its process died
);
