package idemsql

import "errors"

var (
	// ErrOver is returned by a statement on a DB after its function has returned.
	ErrOver = errors.New("idemsql: the handler has returned: execute all statements before, and wait for goroutines that use the DB")

	// ErrTxOpen is returned by a statement on a DB while a transaction is open on it.
	ErrTxOpen = errors.New("idemsql: a transaction is open on this DB: use it, or end it first")

	// ErrTxNotEnded is returned by [Run] if its function returned nil and left a transaction open, or if the context of
	// BeginTx ended before the transaction did: then database/sql has rolled it back.
	ErrTxNotEnded = errors.New("idemsql: a transaction was neither committed nor rolled back: end it before returning nil, and before its context ends")

	// ErrIsolation is returned by BeginTx for an isolation level or a read-only transaction.
	ErrIsolation = errors.New("idemsql: a transaction on this DB is a savepoint of the event's: it has no isolation level and is not read-only")

	// ErrNamedArgs is returned by a statement with a named argument.
	ErrNamedArgs = errors.New("idemsql: Postgres has no named arguments: use $1, $2, …")
)
