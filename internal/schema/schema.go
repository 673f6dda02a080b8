// Package schema asks what a role may do in the schema in which the packages of this module make their tables.
package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// MayCreate returns an error unless the role may create tables in the first schema of the search_path. The error has
// the statements of an administrator.
func MayCreate(ctx context.Context, tx pgx.Tx) error {
	const ask = `select current_user, coalesce(current_schema(), ''), current_setting('search_path'), coalesce(has_schema_privilege(current_schema(), 'create'), false)`
	var role, schema, path string
	var may bool
	if err := tx.QueryRow(ctx, ask, pgx.QueryExecModeExec).Scan(&role, &schema, &path, &may); err != nil || may {
		return err
	}
	name := pgx.Identifier{role}.Sanitize()
	if schema == "" {
		return fmt.Errorf("the search_path, %s, has no schema that exists and that role %q may use: have an administrator run: "+
			"create schema webhooks authorization %s; alter role %[3]s set search_path = webhooks, public", path, role, name)
	}
	in := pgx.Identifier{schema}.Sanitize()
	return fmt.Errorf("role %q may not create tables in schema %q, it lacks the right CREATE: have an administrator run: grant create on schema %s to %s; "+
		"or migrate once with a role that may, and run: grant usage on schema %[3]s to %[4]s; grant select, insert, update, delete on all tables in schema %[3]s to %[4]s",
		role, schema, in, name)
}
