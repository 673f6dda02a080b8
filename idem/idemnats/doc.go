// Package idemnats is NATS JetStream for package idem.
package idemnats
