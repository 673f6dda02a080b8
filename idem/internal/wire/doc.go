// Package wire writes events for where they are outside of Postgres: in the messages
// of a relay.
package wire
