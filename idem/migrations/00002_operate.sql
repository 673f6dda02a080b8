-- +goose Up
-- For whoever runs the application: traces from an attempt back to its delivery, and who did what by hand.

-- What names the trace of the delivery that stored an event, such as a traceparent; null without tracing.
alter table idem_payloads add column if not exists trace text;

-- One row per action of a person. Rows stay until you delete them.
create table if not exists idem_audit (
    id       bigint generated always as identity primary key,
    at       timestamptz not null default now(),
    actor    text        not null, -- who, as the application says
    action   text        not null, -- what: replay, requeue, discard, reveal, …
    source   text        not null,
    filter   text        not null, -- which events were chosen, as people read it
    reason   text        not null,
    events   text[]      not null, -- those that were chosen: source/scope/id
    result   text,                 -- as long as it has not ended: how far a replay has come
    ended_at timestamptz           -- null while it is running, or if its process died
);
