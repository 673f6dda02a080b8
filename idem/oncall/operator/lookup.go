package operator

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// Lookup is an event with the reason why it is not done: see [Operator.Lookup]. [Lookup.Why] and [Lookup.Says]
// put the reason in words.
type Lookup struct {
	idem.StoredEvent

	Failures     []Failure // its last attempts that failed, five at most, the oldest first; none once it is done
	Claim        Claim     // of the workers that process it; zero when none do
	First        *Lookup   // the event of its entity that it waits for; nil when it waits for none
	Behind       int64     // events of its entity that wait for it
	Pause        Pause     // the one that it is in; zero for none
	Acknowledged Action    // by which a person takes care of it, with their name and reason; zero if nobody does, and if the trail does not go back so far
	Workers      int       // of its source that are alive, in all processes: calls of [idem.Inbox.Run]
	At           time.Time // the time of the reading, by the database's clock
}

// Failure is an attempt that failed.
type Failure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"` // its first 300 characters
}

// Claim is the reservation of an event by a process with workers. An event that a delivery or a replay
// processes has none.
type Claim struct {
	Since  time.Time `json:"since"`
	Host   string    `json:"host"` // of the process; "" when its sign of life is deleted
	PID    int       `json:"pid"`
	SeenAt time.Time `json:"seen_at,omitzero"` // its last sign of life
	Alive  bool      `json:"alive"`            // SeenAt is recent; otherwise other workers take the event within 12 seconds
}

// Lookup returns an event by its account and id, in any state, with the event that it waits
// for. ok is false if there is no such event.
func (o *Operator) Lookup(ctx context.Context, scope, id string) (l Lookup, ok bool, err error) {
	l, err = query(ctx, o, "looking an event up", func(ctx context.Context, db *pgxpool.Pool) (l Lookup, err error) {
		one := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly} // one state of the tables
		err = pgx.BeginTxFunc(ctx, db, one, func(tx pgx.Tx) error {
			l, err = o.lookUp(ctx, tx, store.Event{Source: o.SourceName(), Scope: scope, ID: id}.RowKey())
			return err
		})
		return l, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return l, false, nil
	}
	return l, err == nil, err
}

// ByKey returns events by their row keys, in that order, in any state, without their
// payloads. Those that are not stored any more are left out.
func (o *Operator) ByKey(ctx context.Context, keys []string) ([]idem.StoredEvent, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	return o.list(ctx, func(ctx context.Context, db *pgxpool.Pool) ([]store.Row, error) { return store.GetAll(ctx, db, keys) })
}

// lookUp looks an event up, and the one that it waits for.
func (o *Operator) lookUp(ctx context.Context, tx pgx.Tx, key string) (l Lookup, err error) {
	own, err := store.FindWhereabouts(ctx, tx, key)
	if err != nil {
		return l, err
	}
	alive, err := store.LivingWorkers(ctx, tx, o.SourceName())
	if err != nil {
		return l, err
	}
	pauses, err := store.ListPauses(ctx, tx, o.SourceName())
	if err != nil {
		return l, err
	}
	l = o.lookupOf(own, len(alive), pauses)
	if own.First == "" || own.First == key {
		return l, nil
	}
	first, err := store.FindWhereabouts(ctx, tx, own.First)
	if errors.Is(err, pgx.ErrNoRows) { // its row was deleted by hand
		first, err = store.Whereabouts{Now: own.Now}, nil
		first.Event = store.EventOf(own.First)
	}
	l.First = new(o.lookupOf(first, len(alive), pauses))
	return l, err
}

func (o *Operator) lookupOf(w store.Whereabouts, workers int, pauses []store.Pause) Lookup {
	l := Lookup{StoredEvent: o.in.Stored(w.Row), Behind: w.Behind, Pause: pauseOf(pauses, w.Event), Acknowledged: Action(w.Acknowledged), Workers: workers, At: w.Now}
	for _, f := range w.Failures {
		l.Failures = append(l.Failures, Failure(f))
	}
	if c := w.Claim; !c.At.IsZero() {
		l.Claim = Claim{Since: c.At, Host: c.Host, PID: c.PID, Alive: c.Alive}
		if c.Host != "" {
			l.Claim.SeenAt = w.Now.Add(-c.Silent)
		}
	}
	return l
}

// Why is the reason why an event is not done, for programs: see [Lookup.Why].
type Why string

const (
	WhyDone      Why = "done"       // it is done
	WhyDiscarded Why = "discarded"  // it was given up by hand
	WhyWorking   Why = "working"    // workers process it: see Claim
	WhyDied      Why = "died"       // the process that worked on it gives no sign of life; other workers go on with it
	WhyWaits     Why = "waits"      // for First
	WhyPaused    Why = "paused"     // for the end of Pause
	WhyLater     Why = "later"      // for DueAt
	WhyDue       Why = "due"        // for nothing: workers take it next
	WhyNoWorkers Why = "no_workers" // for workers, and none are alive
	WhyUnhandled Why = "unhandled"  // for a handler, and then a person
	WhyParked    Why = "parked"     // for a person
	WhyNoBody    Why = "no_body"    // its body was deleted by hand
)

// Why returns why the event is not done.
func (l Lookup) Why() Why {
	switch {
	case l.State == idem.StateDone:
		return WhyDone
	case l.State == idem.StateDiscarded:
		return WhyDiscarded
	case l.Payload == nil:
		return WhyNoBody
	case l.State == idem.StateUnhandled:
		return WhyUnhandled
	case l.State == idem.StateParked:
		return WhyParked
	case l.Claim.Alive:
		return WhyWorking
	case !l.Claim.Since.IsZero():
		return WhyDied
	case l.First != nil:
		return WhyWaits
	case !l.Pause.Until.IsZero():
		return WhyPaused
	case l.DueAt.After(l.At):
		return WhyLater
	case l.State == idem.StatePending && l.Workers == 0:
		return WhyNoWorkers
	}
	return WhyDue
}

// Says returns in a few sentences why the event is not done, and the remedy if a person has to act. language
// is a tag like pt-BR: the sentences are in Portuguese for tags that begin with pt, otherwise in English. at
// formats a time for the reader.
//
// The sentences contain the error of the last attempt, which may hold personal data.
func (l Lookup) Says(language string, at func(time.Time) string) string {
	s := speech{at: at}
	s.lang, _ = lang.Of(language)
	return strings.Join(l.sentences(s), " ")
}

// speech holds the language of sentences.
type speech struct {
	lang lang.Lang
	at   func(time.Time) string
}

func (s speech) say(t lang.Text, args ...any) string { return portuguese.Say(s.lang, t, args...) }

func (s speech) count(n int64, one, more lang.Text) string {
	return portuguese.Count(s.lang, n, one, more)
}

func (l Lookup) sentences(s speech) (all []string) {
	why := l.Why()
	if !l.failed() && (why == WhyWorking || why == WhyLater || why == WhyDue) {
		all = append(all, s.say("Nothing is wrong: it %s.", l.is(s)))
	} else {
		all = append(all, s.say("It %s.", l.is(s)))
	}
	if l.First != nil && why == WhyParked {
		all = append(all, s.say("Before it, %s is to be done, which %s.", l.First.ID, l.First.is(s)))
	}
	if why == WhyDone || why == WhyDiscarded {
		return all[:1]
	}
	switch {
	case l.AcknowledgedAt.IsZero():
	case l.Acknowledged.Reason == "":
		all = append(all, s.say("Since %s somebody takes care of it.", s.at(l.AcknowledgedAt)))
	default:
		all = append(all, s.say("Since %s %s takes care of it: %s.", s.at(l.AcknowledgedAt), l.Acknowledged.Actor, short(l.Acknowledged.Reason)))
	}
	if l.Crashes > 0 {
		all = append(all, s.count(int64(l.Crashes), "%s process died while they processed it, or were cut off from Postgres.", "%s processes died while they processed it, or were cut off from Postgres."))
	}
	if l.Behind > 0 {
		all = append(all, s.count(l.Behind, "%s event of its entity waits for it.", "%s events of its entity wait for it."))
	}
	if l.State == idem.StatePending && l.Workers == 0 && why != WhyNoWorkers && (l.First == nil || l.First.Why() != WhyNoWorkers) {
		all = append(all, s.say("No workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time."))
	}
	return all
}

// is returns a clause that follows "it" or "which".
func (l Lookup) is(s speech) string {
	switch why := l.Why(); why {
	case WhyDone:
		return s.say("was done at %s", s.at(l.DoneAt))
	case WhyDiscarded:
		return s.say("was discarded: %s", short(strings.TrimPrefix(l.LastError, "discarded: ")))
	case WhyNoBody:
		if l.State == "" {
			return s.say("is not in idem_events any more: somebody deleted its row; idem prune has the others go on")
		}
		return s.say("has no body any more: somebody deleted its row of idem_payloads; delete that of idem_events, too, and have the provider deliver it again")
	case WhyUnhandled:
		return s.say("had no handler when it came: deploy one, then replay it, or requeue it where workers run")
	case WhyParked:
		return s.say("is parked: it %s; nothing happens to it until it is replayed, requeued or discarded", l.hasFailed(s))
	case WhyWorking, WhyDied:
		return l.isClaimed(s)
	case WhyWaits:
		if l.First.Type == "" {
			return s.say("waits for %s, an earlier event of its entity, which %s", l.First.ID, l.First.is(s))
		}
		return s.say("waits for %s, an earlier %s of its entity, which %s", l.First.ID, l.First.Type, l.First.is(s))
	case WhyPaused:
		return s.say("is paused until %s, by %s: %s; idem resume ends that", s.at(l.Pause.Until), l.Pause.Actor, short(l.Pause.Reason))
	case WhyLater:
		if l.failed() {
			return s.say("%s; the next attempt is at %s", l.hasFailed(s), s.at(l.DueAt))
		}
		return s.say("is not due before %s", s.at(l.DueAt))
	}
	return l.isDue(s)
}

func (l Lookup) isDue(s speech) string {
	due := s.say("is next")
	if !l.DueAt.IsZero() {
		due = s.say("has been due since %s", s.at(l.DueAt))
	}
	if l.failed() {
		due = s.say("%s; it %s", l.hasFailed(s), due)
	}
	if l.Workers == 0 {
		return s.say("%s, and no workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time", due)
	}
	return s.say("%s, and workers are alive", due)
}

func (l Lookup) isClaimed(s speech) string {
	since, pid, host := s.at(l.Claim.Since), strconv.Itoa(l.Claim.PID), l.Claim.Host
	silent := l.At.Sub(l.Claim.SeenAt).Round(time.Second).String()
	switch {
	case host == "":
		return s.say("was being processed from %s on, by a process that is dead: other workers go on with it", since)
	case !l.Claim.Alive:
		return s.say("was being processed from %s on, by process %s on %s, which has given no sign of life for %s: other workers go on with it", since, pid, host, silent)
	case l.failed():
		return s.say("%s; it is being processed again since %s, by process %s on %s, which gave a sign of life %s ago", l.hasFailed(s), since, pid, host, silent)
	}
	return s.say("is being processed since %s, by process %s on %s, which gave a sign of life %s ago", since, pid, host, silent)
}

// failed reports whether an attempt has failed. An event that only waits also has a LastError.
func (l Lookup) failed() bool { return l.Attempts > 0 || l.Crashes > 0 || len(l.Failures) > 0 }

func (l Lookup) hasFailed(s speech) string {
	failed := s.say("has failed")
	if l.Attempts > 0 {
		failed = s.count(int64(l.Attempts), "has failed once", "has failed %s times")
	}
	if l.LastError == "" {
		return failed
	}
	return s.say("%s, last with: %s", failed, short(l.LastError))
}

// short cuts an error to fit into a sentence.
func short(text string) string {
	const longest = 200
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
	if letters := []rune(text); len(letters) > longest {
		return string(letters[:longest-1]) + "…"
	}
	return text
}

// portuguese holds the sentences of [Lookup.Says]. A text that goes on after "it" or "which" in
// English does so after "o evento" or "que".
var portuguese = lang.Catalog{
	"It %s.":                                 "O evento %s.",
	"Nothing is wrong: it %s.":               "Está tudo certo: o evento %s.",
	"Before it, %s is to be done, which %s.": "Antes dele vem %s, que %s.",
	"Since %s somebody takes care of it.":    "Desde %s alguém cuida dele.",
	"Since %s %s takes care of it: %s.":      "Desde %s %s cuida dele: %s.",
	"%s process died while they processed it, or were cut off from Postgres.":                                 "%s processo morreu enquanto o processava, ou perdeu a conexão com o Postgres.",
	"%s processes died while they processed it, or were cut off from Postgres.":                               "%s processos morreram enquanto o processavam, ou perderam a conexão com o Postgres.",
	"%s event of its entity waits for it.":                                                                    "%s evento da mesma entidade aguarda este.",
	"%s events of its entity wait for it.":                                                                    "%s eventos da mesma entidade aguardam este.",
	"No workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time.": "Não há workers ativos: inicie o programa que roda o inbox, a menos que Inbox.Drain rode de tempos em tempos.",

	"was done at %s":    "foi concluído em %s",
	"was discarded: %s": "foi descartado: %s",
	"is not in idem_events any more: somebody deleted its row; idem prune has the others go on":                                                "não está mais em idem_events: alguém excluiu a sua linha; idem prune faz os outros seguirem",
	"has no body any more: somebody deleted its row of idem_payloads; delete that of idem_events, too, and have the provider deliver it again": "não tem mais payload: alguém excluiu a sua linha de idem_payloads; exclua também a de idem_events e peça ao provedor que o entregue de novo",
	"had no handler when it came: deploy one, then replay it, or requeue it where workers run":                                                 "não tinha handler quando chegou: publique um e depois reprocesse-o, ou recoloque-o na fila onde há workers",
	"is parked: it %s; nothing happens to it until it is replayed, requeued or discarded":                                                      "está isolado (parked): %s; nada acontece com ele até que seja reprocessado, recolocado na fila ou descartado",
	"waits for %s, an earlier event of its entity, which %s":                                                                                   "aguarda %s, um evento anterior da mesma entidade, que %s",
	"waits for %s, an earlier %s of its entity, which %s":                                                                                      "aguarda %s, um %s anterior da mesma entidade, que %s",
	"%s; the next attempt is at %s":                        "%s; a próxima tentativa é em %s",
	"is paused until %s, by %s: %s; idem resume ends that": "está pausado até %s, por %s: %s; idem resume encerra a pausa",
	"is not due before %s":                                 "não será processado antes de %s",

	"is next":               "é o próximo",
	"has been due since %s": "está na vez desde %s",
	"%s; it %s":             "%s; %s",
	"%s, and no workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time": "%s, e não há workers ativos: inicie o programa que roda o inbox, a menos que Inbox.Drain rode de tempos em tempos",
	"%s, and workers are alive": "%s, e há workers ativos",

	"was being processed from %s on, by a process that is dead: other workers go on with it":                                   "estava sendo processado desde %s por um processo que morreu: outros workers seguem com ele",
	"was being processed from %s on, by process %s on %s, which has given no sign of life for %s: other workers go on with it": "estava sendo processado desde %s pelo processo %s em %s, sem sinal de vida há %s: outros workers seguem com ele",
	"%s; it is being processed again since %s, by process %s on %s, which gave a sign of life %s ago":                          "%s; está sendo processado de novo desde %s pelo processo %s em %s, que deu sinal de vida há %s",
	"is being processed since %s, by process %s on %s, which gave a sign of life %s ago":                                       "está sendo processado desde %s pelo processo %s em %s, que deu sinal de vida há %s",

	"has failed":          "falhou",
	"has failed once":     "falhou uma vez",
	"has failed %s times": "falhou %s vezes",
	"%s, last with: %s":   "%s, por último com: %s",
}
