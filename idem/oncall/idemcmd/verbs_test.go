package idemcmd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

// What a verb does to events is proved in package operator: here it is what the command asks, shows and exits with, and
// that it hands its flags on. Steps of one story follow each other, on a bad night's events, by a role that may not create
// tables.
func TestEachVerbShowsWhatItDoesAsksAndExitsByWhatCameOfIt(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		prepare func(*shop)
		steps   []step
	}{
		"requeue": {nil, []step{
			{reason: "without a person it changes nothing", args: "requeue", status: command.Misused, says: "4 events of notes.\n…again.\n" + nobody},
			{reason: "a single event is asked about as well", types: "n\n", args: "requeue bad_2", status: command.Failed, says: "1 event of notes.\n…bad_2…again.\nRequeue this event? [y/N] " + no},
			{reason: "a look at it needs nobody", args: "requeue -dry-run", out: "4 events of notes.\n…bad_2…bad_5&77…bad_6…evt_7…again.\n"},
			{
				reason: "a person says yes", types: "y\n", args: "requeue -type paid", out: "3 events of notes: requeued for the workers\n",
				says: "3 events of notes.\n…Requeue these 3 events? [y/N] ", effect: "bad_2 pending, bad_5&77 pending, notes/store-2/bad_6 pending; ana requeue: 3 requeued",
			},
			{reason: "-yes is an answer", args: "requeue -yes evt_7 -reason fixed", out: "1 event of notes: requeued for the workers\n", effect: "evt_7 pending; ana requeue fixed: 1 requeued"},
		}},
		"requeue of what is not there": {nil, []step{
			{
				reason: "a mistake in one of several ids must not pass for done", args: "requeue -yes bad_2 bad_5", status: command.Failed, out: "1 event of notes: requeued for the workers\n",
				says:   "idem: no event matched: see whether the id is complete: one with an & in it needs quotes. If it is a payment's, not an event's: -entity bad_5\n",
				effect: "bad_2 pending; ana requeue: 1 requeued",
			},
			{
				reason: "events in other states are told apart", types: "n\n", args: "requeue bad_6 evt_3 evt_1 nope", status: command.Failed,
				says: "idem: no event matched: evt_1 is done, evt_3 is pending, nope is not stored; those that are pending need -state\n1 event of notes.\n…Requeue this event? [y/N] " + no,
			},
			{reason: "as it is where an event is looked at", args: "show bad_2 nope", status: command.Failed, out: "…bad_2…", says: "…idem: no event matched: nope\n"},
		}},
		"events as the trail prints them": {func(s *shop) { // the same id in another account is another event
			s.exec(`insert into idem_events (event, type, key, state) values ('notes//bad_6', 'paid', 'pay_8', 'parked');
				insert into idem_payloads (event, source, lane, received_at, body) values ('notes//bad_6', 'notes', 'notes//pay_8', now(), '')`)
		}, []step{
			{reason: "an id is of every account", args: "requeue -dry-run bad_6", out: "2 events of notes.\n…"},
			{reason: "one of an account", args: "list notes/store-2/bad_6", out: "RECEIVED…\n…store-2  parked  paid  pay_6   bad_6  1 …\n"},
			{reason: "and nothing else", args: "requeue -yes notes/store-2/bad_6", out: "1 event of notes: requeued for the workers\n", effect: "notes/store-2/bad_6 pending; ana requeue: 1 requeued"},
			{
				reason: "one that is not stored, beside one that is", args: "requeue -yes notes/store-3/bad_6 notes//bad_2", status: command.Failed, out: "1 event of notes: requeued for the workers\n",
				says: "idem: no event matched: …-entity notes/store-3/bad_6\n", effect: "bad_2 pending; ana requeue: 1 requeued",
			},
			{reason: "of no account, beside an id", args: "requeue -yes notes//bad_6 bad_5&77", out: "2 events of notes: requeued for the workers\n", effect: "bad_5&77 pending, bad_6 pending; ana requeue: 2 requeued"},
		}},
		"requeue without workers": {func(s *shop) { s.workers = false }, []step{
			{reason: "nothing would happen to them", args: "requeue -yes bad_2", status: command.Failed, says: "idem: …no workers of this source are alive…"},
			{reason: "unless some start later", args: "requeue -yes -without-workers bad_2", out: "1 event of notes: requeued for the workers\n", effect: "bad_2 pending; ana requeue: 1 requeued"},
		}},
		"replay": {nil, []step{
			{reason: "a done event is none of those", args: "replay evt_1", status: command.Nothing, says: "idem: no event matched: evt_1 is done…"},
			{reason: "without a person it changes nothing", args: "replay bad_2", status: command.Misused, says: "1 event of notes.\n…" + nobody},
			{reason: "who may say no", types: "n\n", args: "replay bad_2", status: command.Failed, says: "1 event of notes.\n…The handler of each would run here, …\nReplay this event? [y/N] " + no},
			{
				reason: "a dry run runs the handlers, and changes nothing", args: "replay -dry-run bad_2", out: "1 event of notes.\n…\n1 event of notes: tried, and rolled back: 1 done, 0 failed, 0 without a handler\n",
				effect: "ana dry replay: 1 done, 0 failed, 0 without a handler",
			},
			{
				reason: "what has no handler stays, and there is something left to do", args: "replay -yes evt_7", status: command.Failed, out: "1 event of notes: replayed: 0 done, 0 failed, 1 without a handler\n",
				says: "idem: this program has no handler for 1 event, which stay as they are\n", effect: "ana replay: 0 done, 0 failed, 1 without a handler",
			},
			{
				reason: "beside one that is done it is said", args: "replay -yes evt_7 bad_6", out: "2 events of notes: replayed: 1 done, 0 failed, 1 without a handler\n",
				says: "idem: this program has no handler for 1 event, which stay as they are\n", effect: "notes/store-2/bad_6 done 1; ana replay: 1 done, 0 failed, 1 without a handler",
			},
			{
				reason: "-yes is an answer", args: "replay -yes -reason fixed bad_2", out: "1 event of notes: replayed: 1 done, 0 failed, 0 without a handler\n",
				effect: "bad_2 done 1; ana replay fixed: 1 done, 0 failed, 0 without a handler",
			},
		}},
		"replay of what fails again": {func(s *shop) {
			s.receivers = []NewReceiver{receiver(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID == "bad_6" {
					return pay(ctx, tx, n)
				}
				return errors.New("still no such order")
			})}
		}, []step{
			{
				reason: "a dry run has the same end", args: "replay -dry-run", status: command.Failed, out: "4 events of notes.\n…\n4 events of notes: tried, and rolled back: 1 done, 2 failed, 1 without a handler\n",
				says:   failedAgain,
				effect: "ana dry replay: 1 done, 2 failed, 1 without a handler; first failure: paid bad_2",
			},
			{
				reason: "as the replay", args: "replay -yes", status: command.Failed, out: "4 events of notes: replayed: 1 done, 2 failed, 1 without a handler\n", says: failedAgain,
				effect: "notes/store-2/bad_6 done 1; ana replay: 1 done, 2 failed, 1 without a handler; first failure: paid bad_2",
			},
		}},
		"replay behind a later event": {func(s *shop) {
			s.exec(`insert into idem_events (event, type, key, state, occurred_at)
				select 'notes/store-2/refund', 'refunded', key, 'done', now() + interval '1 hour' from idem_events where event = 'notes/store-2/bad_6'`)
		}, []step{
			{reason: "it is said before", args: "replay -dry-run bad_6", out: "…", says: overtakenByRefund, effect: "ana dry replay: 1 done, …"},
			{reason: "and afterwards", args: "replay -yes bad_6", out: "…", says: overtakenByRefund, effect: "notes/store-2/bad_6 done 1; ana replay: 1 done, …"},
		}},
		"replay of two sources": {func(s *shop) {
			s.exec(`insert into idem_events (event, type, key, state) values ('bills//e1', 'paid', '', 'parked');
				insert into idem_payloads (event, source, received_at, body) values ('bills//e1', 'bills', now(), '{"id":"e1","type":"paid"}')`)
			s.receivers = []NewReceiver{receiver(refuseBad), func(pool *pgxpool.Pool) idem.Receiver {
				source := testkit.NewSource("bills")
				idem.Handle(&source.Routes, "paid", pay)
				return idem.NewInbox(pool, source)
			}}
		}, []step{{
			reason: "what fails for one does not keep the other waiting", args: "replay -yes -json", status: command.Failed,
			out:  `{"source":"notes","action":"replay","matched":4,"dry_run":false,"done":0,"failed":3…{"source":"bills","action":"replay","matched":1,"dry_run":false,"done":1…`,
			says: "…", effect: "bills//e1 done 1; ana replay: 0 done, 3 failed, 1 without a handler; …; ana replay: 1 done, …",
		}}},
		"discard": {nil, []step{
			{reason: "it needs a reason", args: "discard bad_2", status: command.Misused, says: "idem: give a -reason: …"},
			{reason: "and a choice", args: "discard -reason x", status: command.Misused, says: "idem: say which events to discard, …"},
			{reason: "which every state is not", args: "discard -yes -reason x -state pending -state unhandled,parked", status: command.Misused, says: "idem: say which events to discard, …"},
			{reason: "of events in its states", args: "discard -reason x evt_3", status: command.Nothing, says: "idem: no event matched: evt_3 is pending; those that are pending need -state\n"},
			{reason: "without a person it changes nothing", args: "discard bad_2 -reason noise", status: command.Misused, says: "1 event of notes.\n…" + nobody},
			{
				reason: "the effect on later events is shown", types: "n\n", args: "discard bad_2 bad_5&77 -reason noise", status: command.Failed,
				says: "2 events of notes.\n…This cannot be undone.\nBehind them wait 2 events, which would go on.\nDiscard these 2 events? [y/N] " + no,
			},
			{reason: "those that go with them do not wait", types: "n\n", args: "discard bad_2 evt_3 evt_4 -state parked,pending -reason noise", status: command.Failed, says: "…Behind them wait 0 events, which would go on.\n…"},
			{reason: "a look at it needs nobody", args: "discard -dry-run -state parked -reason noise", out: "3 events of notes.\n…"},
			{
				reason: "a mistake in one of several ids must not pass for done", args: "discard -yes -reason noise bad_6 bad_5", status: command.Failed, out: "1 event of notes: discarded\n", says: "idem: no event matched: …",
				effect: "notes/store-2/bad_6 discarded; ana discard noise: 1 discarded",
			},
			{
				reason: "of those that were shown one is done by somebody else meanwhile, and another one comes", types: "y\n", args: "discard -type paid -reason noise", out: "1 event of notes: discarded\n",
				meanwhile: `update idem_events set state = 'done' where event = 'notes//bad_2'; delete from idem_payloads where event = 'notes//bad_2';
					insert into idem_events (event, type, key, state) values ('notes//bad_8', 'paid', 'pay_8', 'parked');
					insert into idem_payloads (event, source, received_at, body) values ('notes//bad_8', 'notes', now(), '{}')`,
				says: "2 events of notes.\n…Discard these 2 events? [y/N] idem: 1 of the 2 events of notes left alone: done, in another state by now, or being processed\n" +
					"idem: 1 event of notes came since, left alone: run it again to see them\n",
				effect: "bad_2 done, bad_5&77 discarded, bad_8 parked; ana discard noise: 1 discarded; 1 left alone: done, in another state by now, or being processed",
			},
		}},
		"acknowledge": {nil, []step{
			{reason: "it needs a reason", args: "acknowledge bad_2", status: command.Misused, says: "idem: give a -reason: …"},
			{reason: "and a choice: nobody has seen all of them", args: "acknowledge -reason x -yes", status: command.Misused, says: "idem: say which events to acknowledge, …"},
			{reason: "which is not by state", args: "acknowledge -reason x -yes -state parked", status: command.Misused, says: "idem: flag provided but not defined: -state: …"},
			{reason: "of events that are there", args: "acknowledge no_such_event -reason x", status: command.Nothing, says: "idem: no event matched: …"},
			{reason: "without a person it changes nothing", args: "acknowledge bad_2 -reason x", status: command.Misused, says: "1 event of notes.\n…" + nobody},
			{reason: "who may say no", types: "n\n", args: "acknowledge bad_2 -reason x", status: command.Failed, says: "1 event of notes.\n…Acknowledge this event? [y/N] " + no},
			{reason: "it stays as it is", args: "acknowledge bad_2 -reason ticket-7 -yes", out: "1 event of notes: acknowledged, not processed\n", effect: "bad_2 parked acknowledged; ana acknowledge ticket-7: 1 acknowledged"},
			{reason: "the next person sees it", args: "list bad_2", out: "…parked, acknowledged…"},
			{reason: "and a program", args: "list -json bad_2", out: `…"acknowledged_at":"2…`},
			{reason: "and who it was", args: "show bad_2", out: "…ana takes care of it: ticket-7.…"},
			{reason: "also a program", args: "show -json bad_2", out: `…"acknowledged":{"actor":"ana","reason":"ticket-7"}…`},
			{reason: "it is counted apart", args: "stats", out: "…acknowledged are 1 more…"},
			{reason: "for a program, too", args: "stats -json", out: `…"acknowledged":1,…`},
			{reason: "it is taken back", args: "acknowledge -undo -failed -reason mine -yes", out: "1 event of notes: acknowledged no more\n", effect: "bad_2 parked; ana unacknowledge mine: 1 unacknowledged"},
			{reason: "once", args: "acknowledge -undo bad_2 -reason again -yes", status: command.Nothing, says: "idem: no event matched: bad_2 is parked…"},
			{
				reason: "one that was never tried is left alone", args: "acknowledge bad_2 bad_5&77 -reason ticket-7 -yes", out: "1 event of notes: acknowledged, not processed\n",
				before: `update idem_events set state = 'pending', attempts = 0 where event = 'notes//bad_5&77'; update idem_payloads set failures = null where event = 'notes//bad_5&77'`,
				says:   "idem: 1 of the 2 events of notes left alone: waiting for their turn and never tried, being processed, or done by now\n",
				effect: "bad_2 parked acknowledged; ana acknowledge ticket-7: 1 acknowledged…",
			},
		}},
		"erase": {nil, []step{
			{reason: "it needs a reason", args: "erase -yes bad_2", status: command.Misused, says: "idem: give a -reason: …"},
			{reason: "and events", args: "erase -yes -reason request-17", status: command.Misused, says: "idem: say what to erase, …"},
			{reason: "an account is none", args: "erase -yes -reason request-17 -account store-2", status: command.Misused, says: "idem: say what to erase, …"},
			{reason: "that are there", args: "erase -yes -reason request-17 -entity pay_9", status: command.Nothing, says: "…idem: no event matched…"},
			{reason: "without a person it changes nothing", args: "erase -reason request-17 bad_2 -discard", status: command.Misused, says: "1 event of notes.\n…" + nobody},
			{
				reason: "who may say no", types: "n\n", args: "erase -reason request-17 bad_2 -discard", status: command.Failed,
				says: "1 event of notes.\n…This cannot be undone.\nIt stays that they came…\nThose that are not done would not be processed.\nErase this event? [y/N] " + no,
			},
			{reason: "what is not done is left alone", args: "erase -yes -reason request-17 bad_2", status: command.Failed, out: "0 events of notes: erased\n", says: "idem: 1 of the 1 event of notes left alone: not done; …", effect: "ana erase request-17: 0 erased; 1 left alone: not done"},
			{reason: "unless that is meant", types: "y\n", args: "erase -reason request-17 bad_2 -discard", out: "1 event of notes: erased\n", says: "…Erase this event? [y/N] ", effect: "bad_2 discarded; ana erase request-17: 1 erased"},
			{reason: "a mistake in one of several ids must not pass for done", args: "erase -yes -reason request-17 evt_1 bad_5", status: command.Failed, out: "1 event of notes: erased\n", says: "idem: no event matched: …", effect: "ana erase request-17: 1 erased"},
		}},
		"prune": {func(s *shop) {
			s.receivers = []NewReceiver{func(pool *pgxpool.Pool) idem.Receiver {
				i := receiver(pay)(pool).(*idem.Inbox)
				i.Retention.Events, i.Retention.AllowProcessingTwice = 2*24*time.Hour, true
				return i
			}}
		}, []step{
			{reason: "the first one sees what is there, and asks nothing", args: "prune", out: "0 events of notes: forgotten\n", effect: "ana prune: 0 forgotten"},
			{reason: "by the application's ages, and without a person it changes nothing", args: "prune", status: command.Misused, before: dayPasses, says: "1 event of notes.\n…The ages: notes older than 2 d; parked ones: never; the audit trail: 730 d.\n" + nobody},
			{reason: "who may say no", types: "n\n", args: "prune", status: command.Failed, says: "…Prune this event? [y/N] " + no},
			{reason: "a look at it needs nobody", args: "prune -dry-run -retention 1h -allow-processing-twice", out: "…The ages: notes older than 1 h; …"},
			{reason: "-yes is an answer", args: "prune -yes", out: "1 event of notes: forgotten\n", effect: "evt_1 gone; ana prune: 1 forgotten"},
			{
				reason: "flags go before the application's ages", args: "prune -retention 12h -allow-processing-twice -parked-retention 4d -yes", before: dayPasses, out: "1 event of notes: forgotten\n",
				effect: "bad_2 gone; ana prune: 1 forgotten",
			},
		}},
		"prune of nothing, after a row was deleted by hand": {func(s *shop) { s.exec(`delete from idem_payloads where event like '%bad_2'`) }, []step{
			{reason: "the doctor sends people to prune", args: "doctor", status: command.Attention, out: "…events wait for an earlier one that is not there…run: idem prune…"},
			{reason: "as others wait for ever", args: "blocked -json", out: `…"pay_2"…`},
			{reason: "which puts right what is stuck", args: "prune", out: "0 events of notes: forgotten\n", effect: "ana prune: 0 forgotten"},
			{reason: "so that the others go on", args: "blocked", status: command.Nothing, says: "idem: no entity is blocked\n"},
		}},
		"rescope": {func(s *shop) {
			s.exec(`delete from idem_payloads where event not like '%bad_6'; delete from idem_events where event !~ 'evt_1|bad_[26]'`)
		}, []step{
			{reason: "what to move", args: "rescope", status: command.Misused, says: "idem: say what to move where: -account and -to-account, once each…"},
			{reason: "and where", args: `rescope -account ""`, status: command.Misused, says: "idem: say what to move where: …"},
			{reason: "and from where", args: "rescope -to-account shop", status: command.Misused, says: "idem: say what to move where: …"},
			{reason: "one account", args: "rescope -account a -account b -to-account shop", status: command.Misused, says: "idem: say what to move where: …"},
			{reason: "that has events", args: "rescope -account shop-3 -to-account shop-1", status: command.Nothing, says: "idem: no event matched…"},
			{
				reason: "a person is shown what, and says no", types: "n\n", args: `rescope -source notes -account "" -to-account shop-1`, status: command.Failed,
				says: "2 events of notes.\nAll of account \"\" would be moved to notes \"shop-1\". Every process that receives or processes events of the source has to be stopped, …Rescope these 2 events? [y/N] " + no,
			},
			{reason: "a look at it needs nobody", args: `rescope -account "" -to-account shop-1 -dry-run`, out: "2 events of notes.\n…"},
			{
				reason: "yes", types: "y\n", args: `rescope -account "" -to-account shop-1 -reason second`, out: "2 events of notes: moved to notes \"shop-1\"\n", says: "…[y/N] ",
				effect: "bad_2 gone, evt_1 gone, notes/shop-1/bad_2 parked, notes/shop-1/evt_1 done 1; ana rescope second: 2 moved",
			},
			{
				reason: "what both have is named", args: "rescope -account store-2 -to-account shop-1 -yes", status: command.Failed, before: `update idem_events set event = 'notes/store-2/bad_2' where event = 'notes/store-2/bad_6'`,
				says: "idem: …1 events are stored under both, so they may have been done twice: notes/store-2/bad_2: …", effect: "ana rescope: nothing was moved; failed: …",
			},
		}},
		"rescope by the prebuilt command": {func(s *shop) {
			s.prebuilt()
			s.exec(`delete from idem_events where event not like '%evt_1'; delete from idem_payloads; insert into idem_events (event, type, key, state) values ('asaas//e1', '', '', 'done')`)
		}, []step{
			{reason: "of which source", args: `rescope -account "" -to-account shop -yes`, status: command.Misused, says: "idem: …-source…"},
			{
				reason: "also to a new name of the source", args: `rescope -source notes -account "" -to-account "" -to-source memos -yes`, out: "1 event of notes: moved to memos without a scope\n",
				effect: "evt_1 gone, memos//evt_1 done 1; ana rescope: 1 moved",
			},
		}},
		"stop": {func(s *shop) { s.action("erase", "now() - interval '1 hour'", "notes//bad_2", "notes//bad_5&77") }, []step{
			{reason: "it needs a number", args: "stop", status: command.Misused, says: "idem: give the number of one action: idem audit prints them\n"},
			{reason: "an event is none", args: "stop evt_1", status: command.Misused, says: "idem: give the number of one action: idem audit prints them\n"},
			{reason: "of an action that is there", args: "stop 77", status: command.Nothing, says: "idem: no event matched: there is no action 77\n"},
			{reason: "and runs", args: "stop 1", status: command.Failed, says: "idem: …the action does not run: it has ended, or its process is dead\n"},
			{reason: "it does not ask", args: "stop 1 -reason wrong", before: `update idem_audit set seen_at = now() + interval '1 hour'`, out: "action 1, the erase of bob, is asked to end: idem audit shows when it has\n", effect: "ana stop wrong: asked to end"},
			{reason: "one is enough", args: "stop 1", status: command.Failed, says: "idem: …ana has asked for it…"},
		}},
		"pause and resume": {func(s *shop) { testkit.KeepAlive(s, s.pool, "notes") }, []step{
			{reason: "it needs an end", args: "pause -reason x", status: command.Misused, says: "idem: say with -for how long, 2h for example: 7d at most\n"},
			{reason: "which is near", args: "pause -reason x -for 8d", status: command.Misused, says: "idem: …7d at most\n"},
			{reason: "and a reason", args: "pause -for 2h", status: command.Misused, says: "idem: give a -reason: …"},
			{reason: "and somebody who confirms it", args: bankIsAway, status: command.Misused, says: "2 events of notes are pending now.\n…" + nobody},
			{reason: "who may say no", types: "n\n", args: bankIsAway, status: command.Failed, says: "…No event of type paid would begin for 2 h; what is running goes on to its end.…Pause them? [y/N] " + no},
			{reason: "or only look", args: bankIsAway + " -dry-run", out: "2 events of notes are pending now.\nNo event of type paid would begin…"},
			{reason: "nothing was paused so far", args: "resume -type paid -yes", status: command.Nothing, says: "idem: …there is no such pause…", effect: "ana resume: failed: …"},
			{reason: "it is begun", types: "y\n", args: bankIsAway, out: "2 events of notes: paused\n", says: "…Pause them? [y/N] ", effect: "ana pause away: until 2026-11-20T10:00:00Z"},
			{reason: "a requeue is refused", args: "requeue bad_2 -yes", status: command.Failed, says: "idem: …by ana: away: end it with idem resume first\n"},
			{reason: "and a replay", args: "replay bad_2 -yes", status: command.Failed, says: "idem: …, or replay them all the same: -paused of idem replay\n"},
			{reason: "which may be told", args: "replay bad_2 -yes -paused", out: "1 event of notes: replayed: 1 done, …", effect: "bad_2 done 1; ana replay: 1 done, …"},
			{reason: "as a dry run always may", args: "replay bad_5&77 -dry-run", out: "…1 event of notes: tried, and rolled back: …", effect: "ana dry replay: 1 done, …"},
			{reason: "whoever looks sees it", args: "stats", out: "…paused: notes: events are paused…paid until …, by ana: away\n…"},
			{reason: "and a program", args: "stats -json", out: `…"pauses":[{"type":"paid","at":"…`},
			{reason: "and how it is ended", args: "doctor", status: command.Attention, out: "…paused: notes: events are paused…found: paid until 2…run: idem resume -source notes -type 'paid'…"},
			{reason: "a resume that is of others lists it", args: "resume -entity pay_1 -yes", status: command.Nothing, says: "idem: paused are events of type paid, until …, by ana: away\nidem: …", effect: "ana resume: failed: …"},
			{reason: "a look at it needs nobody", args: "resume -type paid -dry-run", out: "…Events of type paid would be due now.\n"},
			{reason: "it is ended", types: "y\n", args: "resume -type paid", out: "2 events of notes: resumed\n", says: "…Events of type paid would be due now.\nResume them? [y/N] ", effect: "ana resume: "},
			{reason: "of an entity it is another one", args: "pause -entity pay_5 -for 2h -reason ticket-7 -yes", out: "1 event of notes: paused\n", before: `update idem_events set state = 'pending' where event like '%bad_5&77'`, effect: "ana pause ticket-7: until …"},
			{reason: "which the doctor ends by its flag", args: "doctor", status: command.Attention, out: "…found: pay_5 until 2…run: idem resume -source notes -entity 'pay_5'…"},
			{reason: "typed as it is", args: "resume -source notes -entity pay_5 -yes", out: "1 event of notes: resumed\n", effect: "ana resume: "},
			{reason: "and a requeue goes on", args: "requeue bad_6 -yes", out: "1 event of notes: requeued…", effect: "notes/store-2/bad_6 pending; ana requeue: 1 requeued"},
		}},
		"rerun": {func(s *shop) {
			s.exec(`insert into idem_archive (event, received_at, body) values ('notes//evt_1', now(), '{"id":"evt_1","type":"paid","order":"pay_1"}')`)
		}, []step{
			{reason: "it needs a reason", args: "rerun evt_1", status: command.Misused, says: "idem: give a -reason: …"},
			{reason: "and one event", args: "rerun -reason x", status: command.Misused, says: "idem: say which event…"},
			{reason: "which is stored", args: "rerun nothing -reason x", status: command.Nothing, says: "idem: no event matched: …"},
			{reason: "and done", args: "rerun bad_2 -reason x", status: command.Failed, says: "idem: …it is parked: replay or requeue it\n"},
			{reason: "without a person it changes nothing", args: "rerun evt_1 -reason x", status: command.Misused, says: "paid evt_1 of pay_1.\n…" + nobody},
			{reason: "who may look only", args: "rerun evt_1 -reason x -dry-run", out: "paid evt_1 of pay_1.\n…what it writes and calls takes effect a second time…A dry run of the handler has just passed.\n"},
			{reason: "or say no", types: "n\n", args: "rerun evt_1 -reason x", status: command.Failed, says: "…A dry run of the handler has just passed.\nRun it once more? [y/N] " + no},
			{reason: "or yes", types: "y\n", args: "rerun evt_1 -reason restored", out: "1 event of notes: run once more\n", says: "…[y/N] ", effect: "evt_1 done 2; ana rerun restored: 1 done"},
			{
				reason: "of one account", args: "rerun evt_1 -reason x -yes", status: command.Misused, says: "idem: several accounts have such an event: say which one with -account\n",
				before: `insert into idem_events (event, type, key, state) values ('notes/store-2/evt_1', 'paid', 'pay_1', 'done')`,
			},
		}},
		"without handlers": {(*shop).prebuilt, []step{
			{reason: "a rerun needs them", args: "rerun evt_1 -reason x", status: command.Misused, says: "idem: this program has no handlers…"},
			{reason: "and a replay", args: "replay -yes", status: command.Misused, says: "idem: this program has no handlers…"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.badNight()
			s.role("")
			if story.prepare != nil {
				story.prepare(s)
			}
			for _, c := range story.steps {
				s.step(c)
			}
		})
	}
}

const (
	failedAgain = "  paid bad_2: still no such order\n  paid bad_5&77: still no such order\n" +
		"idem: this program has no handler for 1 event, which stay as they are\nidem: 2 events failed, and stay: idem list shows why\n"
	overtakenByRefund = "idem: 1 event behind later ones of the same entity, which were done before: see that what the handler did is right\n  bad_6 (paid) behind refund (refunded)\n"
	dayPasses         = `update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`
	bankIsAway        = "pause -type paid -for 2h -reason away"
)
