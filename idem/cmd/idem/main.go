// Idem shows, requeues, discards and prunes the webhook events that package idem
// has stored, and examines their database, without the application's handlers:
//
//	export DATABASE_URL=postgres://…
//	go run github.com/paghooks/paghooks/idem/cmd/idem doctor
//	go run github.com/paghooks/paghooks/idem/cmd/idem list -state parked
//	go run github.com/paghooks/paghooks/idem/cmd/idem requeue -type PAYMENT_RECEIVED
//
// Its verbs, flags and exit statuses are those of
// https://pkg.go.dev/github.com/paghooks/paghooks/idem/oncall/idemcmd; idem help prints
// them. Replay runs the handlers, and so needs a program of ten lines, also shown
// there.
package main

import "github.com/paghooks/paghooks/idem/oncall/idemcmd"

func main() { idemcmd.Main() }
