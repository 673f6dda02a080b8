// Package wire writes events for where they are outside of Postgres: in the records of a
// spool, and in the messages of a relay.
package wire
