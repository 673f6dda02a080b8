-- Divides idem_events into 4 partitions by the hash of an event's row key, for hundreds of millions of events.
-- Run it once, by hand, after idem.Migrate, on an empty database or a full one: psql -v ON_ERROR_STOP=1 -f partitioned.sql.
-- The Go code stays the same, and later runs of idem.Migrate change both forms alike. See docs/scale.md for what it is worth.
--
-- It is one transaction: deliveries wait meanwhile, for about a minute per ten million events, and are answered 503 after
-- eight seconds. It needs the space of the table once more, the rights of its owner, and PostgreSQL 13 or later.
-- Leave plan_cache_mode at its default, auto: one plan for all arguments would read more than one partition.
-- Claims, and the insert of one event, set it for themselves: their plans look each event up in its partition.
-- Indexes, triggers and foreign keys of your own on idem_events are not carried over: it stops if there are any. Nor are policies of
-- row-level security, rights on single columns and publications, and it does not stop for those: make them again.

begin;
set local lock_timeout = '5s';
lock table idem_events;

do $$
begin
    if (select relkind from pg_class where oid = 'idem_events'::regclass) <> 'r' then
        raise exception 'idem_events is no plain table: it is divided already';
    end if;
    if exists (select from pg_trigger where tgrelid = 'idem_events'::regclass)
        or exists (select from pg_constraint where conrelid = 'idem_events'::regclass and contype not in ('p', 'n'))
        or (select count(*) from pg_index where indrelid = 'idem_events'::regclass) <> 2 then
        raise exception 'idem_events has triggers, constraints or indexes of yours: drop them, and make them again afterwards';
    end if;
end $$;

alter table idem_events rename to idem_events_plain;
alter index idem_events_pkey rename to idem_events_plain_pkey;
alter index idem_events_conflicts rename to idem_events_plain_conflicts;

-- Whatever columns the migrations have made. The key of the partitions is the primary key, so that the insert stays
-- the duplicate check.
create table idem_events (like idem_events_plain including defaults including comments) partition by hash (event);

do $$
begin
    for n in 0..3 loop
        execute format('create table idem_events_%s partition of idem_events for values with (modulus 4, remainder %s)
            with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
                autovacuum_analyze_scale_factor = 0.02)', n, n);
    end loop;
end $$;

insert into idem_events select * from idem_events_plain;
alter table idem_events add constraint idem_events_pkey primary key (event);
create index idem_events_conflicts on idem_events (event) where conflict_at is not null;

-- The owner and the rights of the plain table, and the view on it.
do $$
declare
    definition text := pg_get_viewdef('idem_event_log'::regclass);
    granted    record;
begin
    execute format('alter table idem_events owner to %I', (select tableowner from pg_tables where tablename = 'idem_events_plain' and schemaname = current_schema()));
    for granted in
        select case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as role, a.privilege_type
        from pg_class c, aclexplode(c.relacl) a
        where c.oid = 'idem_events_plain'::regclass and a.grantee <> c.relowner
    loop
        execute format('grant %s on idem_events to %s', granted.privilege_type, granted.role);
    end loop;
    execute 'create or replace view idem_event_log as ' || replace(definition, 'idem_events_plain', 'idem_events');
end $$;

-- Statistics come from autovacuum: to analyze empty partitions would have Postgres plan to read them through.
drop table idem_events_plain;
commit;
