// Package pgtx is the transaction of one attempt: [Begin] marks the event in
// the round trip of BEGIN, [Tx.Run] runs a handler with the transaction,
// [Tx.Commit] ends it, and [Tx.Close] undoes what was not committed.
//
// A handler may do anything: fail, panic, hang, exit its goroutine, end the
// transaction with SQL, lose the connection. Whatever it does, each method
// returns in time, with an error that says what became of the transaction.
package pgtx
