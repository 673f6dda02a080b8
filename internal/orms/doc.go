// Package orms tests handlers that are written with GORM, ent, sqlx and bun, in the
// transaction of package idem: see package idemsql. It is a module of its own, so that
// their modules are not among this repository's.
package orms
