// Package idem does the work of each webhook event once: the row that records
// the event and the rows that its handler writes are committed in one Postgres
// transaction, or not at all.
//
// What is promised is an exactly-once effect on rows written through the given
// [pgx.Tx]. HTTP calls, e-mails and messages that a handler sends happen at
// least once, unless they go through a row of that transaction.
//
// # Receive events
//
// A provider's package names, verifies and decodes events; this one runs their
// handlers. Make the tables at start, register handlers, and mount the
// processor:
//
//	if err := idem.Migrate(ctx, pool); err != nil { … }
//	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
//		_, err := tx.Exec(ctx, `update orders set paid_at = now() where charge_id = $1`, e.Payment.ID)
//		return err
//	})
//	http.Handle("POST /webhooks/asaas", idem.NewProcessor(pool, events))
//
// # Answer first, work later
//
// The same handlers, behind a provider that must not wait for them: an [Inbox]
// stores the event, answers, and has workers do its work.
//
//	inbox := idem.NewInbox(pool, events)
//	http.Handle("POST /webhooks/asaas", inbox)
//	go inbox.Run(ctx) // in this process, in others, or in both
//
// Events of one Key (one charge) are worked on one after the other, by the
// provider's time and then by arrival; those of different keys at the same time.
// An event whose work fails is tried again, ever later, and kept as failed after
// [Inbox.MaxAttempts]; meanwhile, and then until it is replayed or discarded, the
// events behind it wait. [NoRetry] and [RetryAt] are a handler's own say in that.
//
// Take the inbox where handlers are slow, where order matters, or where the
// provider's queue should not feel your deployments; and have Asaas send
// SEQUENTIALLY, so that events arrive in order. Inline mode has less to run, and
// what it has acknowledged is done.
//
// # What a delivery is answered
//
// The event is marked as done first, then the handler works, then both are
// committed, then the provider is answered:
//
//	done now, or done before             200  stored as done
//	no handler, unknown, unreadable      200  stored as unhandled, with its payload
//	does not decode into its type        200  stored as failed, with its payload
//	the handler failed                   503  rolled back and counted; the provider delivers again
//	it failed ParkAfter times            200  stored as failed, with its payload
//	the database is away                 503  nothing; the provider delivers again
//	the answer to COMMIT was lost        503  done or not; the next delivery finds out
//	a twin of an event in work           as the first one
//	not genuine                          401  nothing
//	an inbox                             200  stored as pending, later as one of the above
//
// A handler that returns an error, panics, swallows an SQL error, ends the
// transaction itself or takes longer than [Processor.Timeout] has failed.
//
// # After a fix
//
// Events that had no handler, or whose work failed too often, wait with their
// payload. Deploy the handler or the fix, then:
//
//	replayed, err := processor.Replay(ctx, idem.Filter{Types: []string{"PAYMENT_OVERDUE"}})
//
// [Processor.List] shows them with their errors, [Processor.DryReplay] tells what
// Replay would do, [Inbox.Requeue] leaves it to the workers, and
// [Processor.Discard] gives events up, with a reason. [Inbox.Blocked] lists the
// keys whose events wait behind a failed one.
//
// Event types that the application never wants are better ignored, so that they
// are not stored: events.Ignore("PAYMENT_BANK_SLIP_VIEWED").
//
// # Side effects
//
// What must follow the commit and may be lost, such as waking a worker, goes to
// [AfterCommit]. What must not be lost is a row of the transaction, which another
// program works through.
//
// # Several accounts
//
// The Accounts function of a dispatcher tells which accounts may have sent a
// request; the account becomes the event's Scope. Events of two accounts never
// collide, and a handler finds its account with [EventFrom].
//
// # Without HTTP
//
// Events that arrive through a queue, verified elsewhere, go to
// [Processor.Accept]. Applications that have their own way of running an event
// once use [Dispatch].
//
// # Change the mode
//
// Both modes use the same tables. To go from inline to the inbox, mount it; what
// inline mode has left as retrying becomes pending when it comes again. To go
// back, mount a [Processor] and let Run go on until Stats shows nothing pending.
// [Processor.HandToInbox] mixes them: inline as long as that works.
//
// # Try a deployment
//
// [Processor.DryRun] runs a handler and rolls back. A genuine delivery with
// [DryRunHeader] does that in the running application.
//
// # Run it
//
// Call [Processor.Prune] daily; it forgets what is older than
// [Processor.Retention]. Alert on [Processor.Stats]: Failed above zero, and
// Pending or Retrying that grow old. [Processor.Observe] feeds metrics.
//
// A delivery holds one connection while its handler runs and none while it
// waits for a twin: size the pool for the handlers that run at once. Handlers
// that want a second connection while they hold the first can starve each other.
//
// The tables are idem_events, some 220 bytes per event with its index;
// idem_payloads, which holds the bodies of events that are not done; and
// idem_claims, which tells what workers have taken, and is empty after a crash of
// Postgres (it is unlogged). They are in the first schema of the connection's
// search_path. Poolers such as PgBouncer work in transaction mode, with pgx's
// QueryExecModeExec or SimpleProtocol, and [Inbox.PollOnly].
//
// # Limits
//
// Done events cost space, and little time: beside a million of them Postgres
// takes a sixth more to store, claim and work on an event than in empty tables,
// and beside ten million (2.3 GB, more than its cache) a third to a half. Prune
// reads the table once from end to end. Where 45 days are hundreds of millions,
// take a shorter Retention; partitions by time would accept an event twice.
//
// What is not done costs more. Workers pass each key that waits (for its
// back-off, or behind a failed event) in 5 microseconds: with 100,000 of them a
// walk takes half a second, and workers make one a second at most. [Processor.Stats]
// reads all that is not done, a million events in a few seconds.
//
// An event of an inbox writes 0.9 kB to Postgres's log beyond its body, from
// arrival to done; an event of inline mode 0.3 kB. With wal_level = logical each
// body is written a second time, when it is deleted, because idem_payloads has no
// primary key.
//
// A worker's COMMIT does not wait for the disk, see [Inbox.WaitForDisk].
package idem
