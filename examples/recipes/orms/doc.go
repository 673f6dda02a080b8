// Package orms has handlers that are written with GORM, ent, sqlx and bun, in the
// transaction of package idem: see package idemsql.
package orms
