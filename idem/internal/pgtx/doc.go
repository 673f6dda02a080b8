// Package pgtx is the transaction of one attempt: [Begin] marks the event in
// the round trip of BEGIN, [Tx.Run] runs a handler with the transaction,
// [Tx.Commit] ends it, and [Tx.Close] undoes uncommitted work.
//
// A handler may do anything: fail, panic, hang, exit its goroutine, end the
// transaction with SQL, lose the connection. In each case, each method
// returns in time, with an error that names the fate of the transaction.
package pgtx
