// Package idemsql runs handlers that are written for [database/sql], GORM, ent, sqlx
// or bun in the transaction of package idem.
//
// # Write a handler with database/sql
//
// [Handler] turns a function that takes a [sql.DB] into a handler. All statements of the
// DB are executed in the event's transaction, so they take effect exactly once, with the
// record that the event is done:
//
//	events.OnPaymentReceived(idemsql.Handler(func(ctx context.Context, db *sql.DB, e *asaas.PaymentEvent) error {
//		_, err := db.ExecContext(ctx, `insert into receipts (charge) values ($1) on conflict do nothing`, e.Payment.ID)
//		return err
//	}))
//
// [Run] does the same inside a handler that also uses its [pgx.Tx], for COPY, batches or
// idem.ExecAtCommit.
//
// # Write a handler with GORM
//
// Open GORM on the handler's DB, once per event. It executes no statement for that:
//
//	events.OnPaymentReceived(idemsql.Handler(func(ctx context.Context, db *sql.DB, e *asaas.PaymentEvent) error {
//		g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{
//			SkipDefaultTransaction: true,
//			Logger:                 quiet, // logger.New(…, logger.Config{ParameterizedQueries: true}): no values in the log
//		})
//		if err != nil {
//			return err
//		}
//		return g.WithContext(ctx).Create(&Receipt{Charge: e.Payment.ID}).Error
//	}))
//
// Three mistakes cost money, and the last two show no error:
//
//   - A Session of the application's own GORM, with the handler's DB as its ConnPool, can
//     write outside of the transaction: with dbresolver, and with PrepareStmt. Call
//     gorm.Open on the handler's DB instead.
//   - An application's GORM that is used in the handler is another connection: its writes
//     stay when the event fails, and happen again when it is retried. The crash kit of
//     package idemtest finds this.
//   - With GORM's defaults, a failed Create is rolled back to a savepoint of its own. A handler
//     that does not return the error in Error then succeeds, and the event is done
//     without its effect. With SkipDefaultTransaction the transaction is aborted, and idem
//     refuses to commit. Return every error.
//
// # Write a handler with ent, sqlx or bun
//
//	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
//	x := sqlx.NewDb(db, "pgx")
//	b := bun.NewDB(db, bunDialect) // keep one pgdialect.New() for all events
//
// Ent and sqlx prepare nothing by themselves. Bun writes values into the SQL, so that each
// statement is another one: give it a pool with default_query_exec_mode=exec.
//
// # Transactions
//
// Begin on the DB makes a savepoint: Rollback undoes the work since then, and Commit keeps it until
// the event's transaction ends. One can be open at a time. Until it ends, statements on
// the DB beside it return [ErrTxOpen]. Savepoints of GORM and bun nest inside it.
// A transaction must be ended before the context of BeginTx is. One Run at a time can use an event's transaction.
// Isolation levels and read-only transactions are refused, and so is a COMMIT as SQL.
//
// # Limits
//
// All rows of a query are read at once; use tx.Query to stream. A context that ends
// during a statement closes the connection, and the attempt fails, as with pgx. Prepare
// prepares nothing, so a syntax error shows when the statement is executed. LastInsertId is not
// supported; use RETURNING.
package idemsql
