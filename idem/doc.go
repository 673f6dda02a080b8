// Package idem processes each webhook event once: the row that records the event
// and the rows that its handler writes are committed in one Postgres transaction,
// or not at all.
//
// A program needs eleven names of this package:
//
//   - [Migrate] makes the tables, at every start.
//   - [NewInbox] returns an [Inbox], which stores an event, answers, and has workers process it; with WorkFirst it
//     makes a first try before it answers.
//   - [Serve] runs the program: HTTP, workers, the daily pruning, and the end.
//   - A [Handler] is your function for events of one type. In it, [EventFrom] returns the event, [NoRetry] and
//     [RetryAt] say what becomes of an event that fails, and [AfterCommit] registers a function for later.
//   - A [Filter] chooses events for [Inbox.Replay], after a fix.
//
// The section "The other names" lists the rest by its use.
//
// Processing is idempotent: an exactly-once effect on rows written through the given
// [pgx.Tx], per event. HTTP calls, e-mails and messages that a handler sends
// happen at least once, unless they go through a row of that transaction. Two
// events of one payment, such as PAYMENT_CONFIRMED and PAYMENT_RECEIVED, are two
// events: an order is set to the sum of its payments, as package asaas/charges does.
//
// # Receive events
//
// A provider's package names, verifies and decodes events; this one runs their
// handlers. An [Inbox] stores an event, answers, and has workers process it. Make
// the tables at start, register handlers, mount the inbox and run its workers:
//
//	if err := idem.Migrate(ctx, pool); err != nil { … }
//	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//	events.OnPayment(charges.Orders(paid))
//	inbox := idem.NewInbox(pool, events)
//	http.Handle("POST /webhooks/asaas", inbox)
//	err := idem.Serve(ctx, &http.Server{Addr: ":8080"}, inbox)
//
// A handler that returns nil is done with the event for good, even if its update
// changed no row. So do not look up an order by the charge's id: the webhook can
// arrive before you have stored it. A failed event is tried again, after growing
// pauses, and parked after [Inbox.MaxAttempts], which turns health red.
//
// An event's Key names its entity, a charge for example. Events of one entity are
// processed one after the other, by the provider's time and then by arrival; those
// of different entities at the same time. While an event waits for its next attempt,
// and when it is parked until it is replayed or discarded, the events behind it
// wait. Handlers can override this with [NoRetry] and [RetryAt].
//
// Order is kept among events that have arrived. A late event is handled late, and
// none is skipped because a newer one was handled: it may be money. So a handler
// that copies a state compares times in its own statement, as package asaas/charges
// does. The function AnyOrder of package idemtest delivers events in every order.
//
// # Work first
//
// With WorkFirst a delivery makes a first try before it is answered: the handler and the record that the event is done
// are committed, and then the answer is 200. That costs a third of storing an event and processing it, and takes half
// the time.
//
//	inbox.WorkFirst = true
//
// The try is not counted, and everything else stays as it is. The event is stored and answered 200, for the workers,
// if its try fails or takes longer than [Inbox.AnswerWithin], if an earlier event of its Key is not done or one is
// being processed, if the event is paused, and if no connection is free within a second. An event that does not decode
// or has no handler is stored at once. So 200 means that the event is done or stored; [Inbox.Accept] returns which.
// WorkFirst does not promise three things that an inbox without it does:
//
//   - An event that arrives while an earlier one is tried, or waits for a connection, may be processed first: in the
//     moment before the earlier one is done or stored.
//   - An event that kills its process in the first try is not stored: the provider delivers it again.
//   - A handler that is slower than AnswerWithin runs twice, also at the same time if it does not end with its context
//     and the workers are another process's. What it does outside of its transaction is done twice.
//     Package health reports it if more than one in twenty does.
//
// If no workers run anywhere, a try that fails is answered 503, and nothing is stored: the provider delivers the event
// again, and later ones of its entity may be processed before it. An error of [NoRetry] parks the event, and later
// events of its entity are answered 503 until a person acts, unless PassParked is set. Whether workers run elsewhere is
// asked once a minute. Use this on hosts that run a program only during requests. An event that always fails then keeps
// failing, until the provider stops its queue.
//
// # While Postgres is unavailable
//
// Deliveries are answered 503 then, and the provider delivers again, at its own pace.
// A relay answers 200 instead: it publishes events to a broker, and a consumer stores them: see
// package relay. It needs a broker that keeps the messages it confirms: modules idemrabbitmq, idemkafka
// and idemsqs have a [broker.Publisher] and a Consume for one each.
//
//	http.Handle("POST /webhooks/asaas", relay.New(events, publisher, secret))
//	err := idemkafka.Consume(ctx, client, relay.To(inbox, secret))
//
// # The path of an event
//
//	delivery   ServeHTTP → Source.Open → Inbox.Accept → store: pending → answer
//	                                          ┆             one insert for all that arrive at the same time
//	                                  WorkFirst: one try → done → answer
//
//	worker     Inbox.Run → claim → attempt → done, or: tried again later, parked, unhandled
//	                         │        │
//	            head of its entity   begin + mark done │ handler │ next of its entity + commit
//
//	replay     Inbox.Replay → claim these, one as it is begun → attempt → done, parked, or as it was
//	requeue    Inbox.Requeue → these are due
//
//	relay      ServeHTTP → Source.Open → Relay.Accept → Publisher → answer
//	                                          ┆
//	                                 broker → Consume → relay.To → Inbox.Accept
//
// Each arrow is a call that returns. An attempt is the same everywhere: first tries, workers and [Inbox.Replay] differ
// in the statement that marks the event. The mark is the duplicate check: if it changes nothing, the handler does not
// run. Only [Inbox.DryRun], which rolls back, and a rerun of package operator run it then, too.
//
// An event is done, pending, unhandled, parked or discarded: see [State]. Pending means that workers are to process
// it; parked, that it failed too often, and that a person decides.
//
// # Answers to deliveries
//
// [Inbox.ServeHTTP] lists them, and docs/promises.md says for each case what is stored, with the test that
// proves it. An event of a type that is not ignored is acknowledged once it is on disk, by a relay once the broker
// has it; where that cannot be, the answer is 503, and the provider delivers it again.
//
// A handler that returns an error, panics, swallows an SQL error, ends the transaction itself or takes longer than
// [Inbox.Timeout] has failed. So has one that returns while one of its goroutines still uses the transaction.
//
// # Settings of the session
//
// A handler changes settings for its transaction: SET LOCAL, or set_config with the word true. A setting that lasts
// longer would apply to the next event: with a schema for each tenant, in another tenant's tables. So the connection is
// closed after a handler that executes SET without LOCAL, set_config without true, RESET, DISCARD, DEALLOCATE, LISTEN,
// LOAD, DO, EXECUTE or PREPARE, that sends anything on tx.Conn() itself, or that calls tx.LargeObjects(): the log says
// so once. To ask tx.Conn() for its Config or its TypeMap, as River does, sends nothing. DEALLOCATE ALL may fail the
// attempt: it also takes the statements that pgx has prepared on the connection.
//
// Where a handler's statement calls a function of the database, the search path, the role and synchronous_commit are
// reset, so that the next event is recorded in its own tables: in a round trip before COMMIT, or with it in a first
// try. Functions of Postgres's own that handlers often call cost nothing. Settings changed by triggers, views,
// operators or defaults are not detected, nor are other settings that a function leaves behind: reset them yourself. A
// temporary table without ON COMMIT DROP, a lock of the session or a cursor WITH HOLD stays on the connection, as with
// every pool. Behind a pooler that shares sessions, closing a connection does not help.
//
// # After a fix
//
// Events that had no handler, or that failed too often, wait with their payload.
// Deploy the handler or the fix, then:
//
//	replayed, err := inbox.Replay(ctx, idem.Filter{Types: []string{"PAYMENT_OVERDUE"}})
//
// [Inbox.List] shows them with their errors, [Inbox.DryReplay] returns the result that Replay would have,
// [Inbox.Requeue] leaves it to the workers, and [Inbox.Discard] gives events up, with a reason. Package operator
// records the same operations in an audit trail, says why an event is not done and which entities stand still, pauses
// events of a source, a type or an entity for a time, and erases what is stored of a person: the page
// docs/private-data.md lists each place where a person's data can be.
//
// Ignore the event types that the application does not need, and they are not stored:
// events.Ignore("PAYMENT_BANK_SLIP_VIEWED").
//
// # Side effects
//
// Work that must follow the commit and may be lost, such as waking a worker, goes to
// [AfterCommit]. Work that must not be lost is written as a row of the transaction: an
// outbox publishes messages that handlers emit, to a broker or anything else: see package
// outbox.
// Statements that need no answer travel with COMMIT: see [ExecAtCommit].
//
// # Several accounts
//
// The Accounts function of a dispatcher returns the accounts that may have sent a
// request; the account becomes the event's Scope. Events of two accounts never
// collide, and a handler finds its account with [EventFrom]. Where two accounts
// share an address without scopes, an id that both use is a duplicate:
// operator.Operator.Conflicts lists those.
//
// The scope is part of an event's name for good: see [Event]. Before an account gets one, or another one, move its
// events with operator.Operator.PlanRescope; [Serve] and package health notice what was not moved.
//
// # Without HTTP
//
// Events that arrive in another way, and are verified elsewhere, go to
// [Inbox.Accept]; those of a broker to relay.To, which verifies them. Applications
// that have their own way of running an event once use [Dispatch]. Where no process can
// run all the time, [Inbox.Drain] processes all due events and returns.
//
// # Try a deployment
//
// [Inbox.DryRun] runs a handler and rolls back. A genuine delivery with
// [DryRunHeader] does that in the running application. Calls that the handler makes are real, unless it asks
// [IsDryRun] first: the function DryRun of package idemtest finds handlers that do not ask.
//
// # Run it
//
// [Serve] runs a whole program: HTTP, workers, canaries, and the daily [Inbox.Prune]; a worker of the application's
// own is a [Part]. Package health answers whether events are processed, and turns red before the provider stops its
// queue. Package canary delivers an event of its own through the real address every 30 seconds, so that a broken
// deployment turns health red within about a minute.
//
//	canary := asaas.NewCanary("https://shop.example/webhooks/asaas", token)
//	http.Handle("GET /health/webhooks", health.New(inbox, canary))
//	err := idem.Serve(ctx, &http.Server{Addr: ":8080"}, inbox, canary)
//
// Alert on health, and on Parked of [Inbox.Stats] above zero. Modules idemprom, for
// Prometheus, and idemotel, for OpenTelemetry, measure deliveries, attempts and the events that
// wait, by the Observe and Tracer fields of [Endpoint]. For people there are package console, a web page; the command
// idem; and the view idem_event_log in the database, one row per event with its state, its last errors, and when it
// was done.
//
// A handler holds one connection while it runs: size the pool for the handlers that run at once. Handlers that want a
// second connection while they hold the first can starve each other.
//
// The tables are idem_events, one small row per event; idem_payloads, the bodies of events that are not done;
// idem_archive, the bodies of done ones if [Inbox.KeepPayloads] is set; idem_workers, the signs of life of workers and
// replays; idem_audit, the actions through package operator; idem_pauses, what they have paused; idem_notices, what a
// health.Notifier tells; and idem_prunes, the days that [Inbox.Prune] has seen. They are in the first schema of the
// connection's search_path. Poolers such as PgBouncer work in transaction mode, with pgx's QueryExecModeExec or QueryExecModeSimpleProtocol, and
// [Inbox.PollOnly]. In these two modes pgx reads the text that Postgres prints: DateStyle must be ISO, IntervalStyle
// postgres and bytea_output hex, as they are by default. Otherwise an Inbox stores events that its workers cannot read.
//
// An acknowledged event is on disk, with any default of synchronous_commit, and whatever a handler sets. A replica
// that is promoted may lack the last moment, unless Postgres waits for it: see synchronous_standby_names, and
// [WatchCommits], which the pool needs then.
//
// # When the network fails
//
// Every wait of a delivery or a worker has a timeout. When a network forgets its connections, or Postgres moves, a
// statement that begins an attempt, stores or claims is given up after 5 seconds without an answer, a handler after
// [Inbox.Timeout]; the pool gets new connections, and the rest of a broken attempt in Postgres is terminated, so that
// its row can be locked again. An event that a killed process had claimed goes on elsewhere within 12 seconds; one of a
// process that is stopped or cut off, or whose host vanished, within Timeout and 15 seconds: other workers end the
// sessions that it has left, if they have the same role.
//
// The session of a first try in a process that is cut off for good is not ended by others, nor, behind a
// pooler, an attempt that never got the answer to BEGIN: so that Postgres notices within a
// minute, and not after two hours, set in the connection string
//
//	tcp_keepalives_idle=20&tcp_keepalives_interval=5&tcp_keepalives_count=4&idle_in_transaction_session_timeout=60s
//
// The last one must be longer than the longest pause that a handler makes between
// two statements.
//
// # Limits
//
// The database's encoding is UTF8. In another encoding, an event whose id, type or entity has a character that it lacks
// is always answered 503.
//
// Done events cost space, and little time. Prune reads the table twice from end to
// end. Where 45 days are hundreds of millions, take a Retention of 31; partitions
// by time would accept an event twice.
//
// [Inbox.Stats] and operator.Operator.Blocked read all that is not done, a million events in
// a few seconds. An event that waits behind another of its entity costs workers
// nothing once they have seen it.
//
// # The other names
//
//   - Settings: [Inbox], [Endpoint], which a relay has as well, and [Retention].
//   - Handlers: [Event], [IsDryRun], [ExecAtCommit], [Dispatch] and [ErrUnhandled].
//   - Events that are stored: [StoredEvent], its [State], [Replayed] and [Overtaken], [Stats] and [Backlog].
//   - What is observed: [Observation], its [Stage] and [Outcome]; [Tracer] and [Span]. Package gauge makes metrics
//     of them, package health and its [check.Result] what a monitor reads.
//   - A program's parts: [Part] and [Receiver], which [Serve] runs.
//   - A provider's package: [Source], [Routes] with [Handle], [HandleFamily] and [HandleOthers], [Work],
//     [Refusal] and its [Reason], [Credentials], [ReadBody], [BodyID]. Package provider has the rest of one.
//   - The tables: [MigrateSchema], [Migrations] for other tools, and [WatchCommits] for a synchronous replica.
//   - Dry runs: [DryRunHeader].
//
// # Files
//
// Each file reads from the top, and so do the files in this order:
//
//	event handler routes // an event, its provider, and what runs for it
//	endpoint body observe // a delivery: open, accept, answer; what the application is told
//	inbox storing setaside first // settings; store and answer; the first try
//	attempt statement // begin and mark, handler, commit, hooks: the only place where a handler runs
//	worker runner work // claim, stay alive, process one claim
//	list replay discard dryrun prune // operations on stored events; forgetting
//	examine migrate serve // health; the tables; running a program
//	inside // what other packages of this project need, and no program does
package idem
