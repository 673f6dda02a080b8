-- +goose Up
-- A person takes note of an event that fails or is parked, and health is red for it no more.

-- When that was; null: nobody has. Of a parked event it counts until the event fails again, of one that is tried again by
-- itself until that is parked.
alter table idem_payloads add column if not exists acknowledged_at timestamptz;

-- Up to here only the audit trail said so.
update idem_payloads p set acknowledged_at = a.at
from (select event, max(at) as at from idem_audit cross join unnest(events) as u (event)
    where action = 'acknowledge' and ended_at is not null group by event) a
where a.event = p.event and p.acknowledged_at is null;
