// Package ent is the client that ent generates from its schema, for the tests of this module.
package ent

//go:generate go tool ent generate ./schema
