-- +goose Up
-- A person takes note of an event that fails or is parked, and health is red for it no more.

-- When that was; null: nobody has. Of a parked event it counts until the event fails again, of one that is tried again by
-- itself until that is parked. Up to here only the audit trail said so, and only of parked ones: what was requeued since may fail anew.
-- +goose StatementBegin
do $$ begin
    if exists (select from pg_attribute where attrelid = 'idem_payloads'::regclass and attname = 'acknowledged_at' and not attisdropped) then
        return; -- what was taken back since stays so
    end if;
    alter table idem_payloads add column acknowledged_at timestamptz;
    update idem_payloads p set acknowledged_at = a.at
    from (select event, max(at) as at from idem_audit cross join unnest(events) as u (event)
        where action = 'acknowledge' and ended_at is not null group by event) a join idem_events e using (event)
    where a.event = p.event and e.state = 'parked' and not p.held;
end $$;
-- +goose StatementEnd
