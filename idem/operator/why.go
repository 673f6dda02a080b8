package operator

import (
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/lang"
)

// Why is, for machines, why an event is not done: see [Lookup.Why].
type Why string

const (
	WhyDone       Why = "done"       // it is done
	WhyDiscarded  Why = "discarded"  // it was given up by hand
	WhyWorking    Why = "working"    // workers process it: see Claim
	WhyDied       Why = "died"       // the process that worked on it gives no sign of life; other workers go on with it
	WhyWaits      Why = "waits"      // for First
	WhyLater      Why = "later"      // for DueAt
	WhyDue        Why = "due"        // for nothing: workers take it next or, if it was Held, [idem.Processor.Run]
	WhyNoWorkers  Why = "no_workers" // for workers, and none are alive
	WhyRedelivery Why = "redelivery" // for the provider, which is to deliver it again
	WhyUnhandled  Why = "unhandled"  // for a handler, and then a person
	WhyParked     Why = "parked"     // for a person
	WhyNoBody     Why = "no_body"    // its body was deleted by hand
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
	case l.State == idem.StateRetrying:
		return WhyRedelivery
	case l.State == idem.StateUnhandled:
		return WhyUnhandled
	case l.State == idem.StateParked && !l.Held:
		return WhyParked
	case l.Claim.Alive:
		return WhyWorking
	case !l.Claim.Since.IsZero():
		return WhyDied
	case l.First != nil:
		return WhyWaits
	case l.DueAt.After(l.At):
		return WhyLater
	case l.State == idem.StatePending && l.Workers == 0:
		return WhyNoWorkers
	}
	return WhyDue
}

// Says returns in a few sentences why the event is not done, and the remedy if a person has
// to act. language is a tag like pt-BR: Portuguese for those that begin with pt, else
// English. at returns a time as the reader is to see it.
//
// The sentences have the error of the last attempt, which may hold personal data.
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

// is goes on after "it" or "which".
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
	case WhyRedelivery:
		return s.say("%s; the provider is to deliver it again", l.hasFailed(s))
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
	switch {
	case l.Held:
		return s.say("%s: what it waited for is done, and idem.Serve, Processor.Run or a replay goes on with it", due)
	case l.Workers == 0:
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

// failed returns whether an attempt has; an event that only waits has an error, too.
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

// short is an error as it fits into a sentence.
func short(text string) string {
	const longest = 200
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
	if letters := []rune(text); len(letters) > longest {
		return string(letters[:longest-1]) + "…"
	}
	return text
}
