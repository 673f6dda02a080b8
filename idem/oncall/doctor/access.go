package doctor

// access finds roles that may read the bodies of events, or write the tables, without need: a host that publishes the
// schema public by an API grants all rights on every new table to the roles of that API.
//
// It leaves out the owner, its members, superusers, the current role, and the roles of which the current one is a
// member, unless the current one is the owner, which may be a member of every role. It also leaves out a role that can
// log in and has the rights of an application only: select, insert, update and delete, and not truncate, which comes
// with "all". Members of pg_read_all_data and pg_write_all_data have no grant on these tables: an administrator has
// given them all tables of the server. Row level security without a policy hides a table from the other roles.
const access = `
with tables as (
	select c.oid, relname as name, relowner as owner, relnamespace as schema, relacl as acl,
		relrowsecurity and not exists (select from pg_policy where polrelid = c.oid) as closed
	from pg_class c where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and relname ~ '^(idem|asaas_charges|asaas_statement)'
), grants as (
	select t.*, grantee, privilege_type as verb from tables t, aclexplode(acl)
	union all
	select t.*, a.grantee, a.privilege_type from tables t join pg_attribute on attrelid = t.oid and attname = 'body', aclexplode(attacl) a
), roles as (
	select grantee, case grantee when 0 then 'public' else rolname end as role,
		bool_or(verb = 'SELECT' and name in ('idem_payloads', 'idem_archive')) as reads,
		bool_or(verb in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE')) as writes,
		rolcanlogin and array_agg(verb) filter (where name = 'idem_events') @> '{SELECT,INSERT,UPDATE,DELETE}' and not bool_or(verb = 'TRUNCATE') as works,
		bool_or(pg_has_role(owner, 'member')) as asks_as_owner
	from grants left join pg_roles r on r.oid = grantee
	where not coalesce(rolsuper or pg_has_role(grantee, owner, 'member'), false) and (not closed or coalesce(rolbypassrls, false))
		and has_schema_privilege(case grantee when 0 then 'public' else rolname end, schema, 'usage')
	group by grantee, rolname, rolcanlogin
), found as (
	select role, case grantee when 0 then 'PUBLIC' else quote_ident(role) end as name, concat_ws(' and ', case when reads then 'read bodies' end, case when writes then 'write' end) as may
	from roles where (reads or writes) and role <> current_user and not coalesce(works, false)
		and (asks_as_owner or grantee = 0 or not pg_has_role(grantee, 'usage'))
)
select 'warning', 'other roles than the application''s may read the bodies of events, or write the tables', string_agg(name || ' may ' || may, ', ' order by name),
	'put the tables in a schema of their own, as docs/postgres.md says, where the host publishes this one; or take the rights away, and do it again after a migration',
	format('revoke all on %s from %s', (select string_agg(quote_ident(name), ', ' order by name) from tables), string_agg(name, ', ' order by name))
from found having count(*) > 0`
