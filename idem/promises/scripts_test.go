package promises_test

import "testing"

func TestEventsOfAnEntityAreDoneInTheirOrder(t *testing.T) {
	play(t, []script{
		{"of arrival", `deliver c; deliver a; deliver b; work → ledger c a b`},
		{"of the provider's time", `deliver b late; deliver c; deliver a early; work → ledger a c b`},
		{"a late event is not skipped", `deliver b late; work; deliver a early; work → ledger b a`},
		{"entities do not wait for each other", `deliver a; fail a; deliver b; deliver c o2; work → a parked, b pending, ledger c`},
		{"events without an entity wait for nobody", `deliver a alone; fail a; deliver b alone; work → a parked, ledger b`},
		{"an entity may have the id of an event without one", `deliver o1 alone; fail o1; deliver b; work → o1 parked, ledger b`},
		{"one that fails holds those behind it", `deliver a; deliver b; fail a error panic; work → ledger a b`},
		{"one that is tried later holds them, too", `deliver a; deliver b; fail a later; drain → a pending, b pending`},
		{"they go on when it is done", `deliver a; deliver b; fail a later swallowed; drain; work → ledger a b`},
		{"an older one is the new head", `deliver b late; fail b later; drain; deliver a early; drain; work → ledger a b`},
		{"behind an older one that is parked, too", `deliver b; fail b; work; deliver c late; deliver a early; fail a; work; discard a; work; requeue b; work → a discarded, ledger b c`},
		{"one without a handler lets them go on", `deliver a odd; deliver b; work → a unhandled, ledger b`},
		{"one that is ignored since is done", `deliver a odd; deploy ignored; deliver b; work → ledger b`},
		{"one that is ignored is not stored", `deploy ignored; deliver a odd; first b odd; deliver c; work → ledger c`},
		{"one that does not decode keeps its place", `deliver a broken; deliver b; deliver c o2; work; discard o1; work → a discarded, ledger b c`},
	}...)
}

func TestAttemptsAreCountedAndEndInParked(t *testing.T) {
	play(t, []script{
		{"the last of MaxAttempts parks", `deliver a; fail a error panic swallowed; work → a parked`},
		{"one before it does not", `deliver a; fail a error panic; work → ledger a`},
		{"NoRetry parks at once", `deliver a; fail a final; work → a parked`},
		{"RetryAt counts nothing", `deliver a; fail a later later later later error error; work → ledger a`},
		{"nor does a serialization failure", `deliver a; fail a again again again again error error; work → ledger a`},
		{"three of its runs are one attempt", `deliver a; fail a again again again; drain → ledger a`},
		{"one that does not decode is parked", `deliver a broken; work; replay; work → a parked`},
	}...)
}

func TestAParkedEventHoldsItsEntityUntilSomebodyActs(t *testing.T) {
	const parked = `deliver a; fail a; deliver b; work; deliver c; deliver x o2; work; `
	play(t, []script{
		{"nobody", parked + `work → a parked, b pending, c pending, ledger x`},
		{"a replay", parked + `replay; work → ledger x a b c`},
		{"a replay that fails", parked + `fail a error; replay a; work → a parked, b pending, c pending, ledger x`},
		{"a requeue", parked + `requeue; work → ledger x a b c`},
		{"a discard", parked + `discard a; work → a discarded, ledger x b c`},
		{"it comes again", parked + `deliver a; work → ledger x a b c`},
		{"it comes again, to one that works first", parked + `first a; work → ledger x a b c`},
		{"PassParked, which is deployed since", parked + `deploy pass; work → a parked, ledger x b c`},
		{"PassParked, from the beginning", `deploy pass; deliver a; fail a; deliver b; deliver c broken; deliver d; work → a parked, c parked, ledger b d`},
		{"PassParked, and it goes back to its place", `deploy pass; deliver a; fail a; work; deliver b; requeue a; drain → ledger a b`},
		{"PassParked, and its replay fails", `deploy pass; deliver a; fail a; work; deliver b; fail a error; replay a; drain → a parked, ledger b`},
		{"PassParked, and one that works first", `deploy pass; first a broken; first b; fail c; deliver c; work; first d → a parked, c parked, ledger b d`},
	}...)
}

func TestEventThatComesAgainIsTheWorkers(t *testing.T) {
	play(t, []script{
		{"done", `deliver a; work; deliver a; first a; work → ledger a`},
		{"pending", `deliver a; deliver a; first a; work → ledger a`},
		{"parked, with all its attempts", `deliver a; fail a error error error; work; deliver a; fail a error error; work → ledger a`},
		{"parked, to one that works first", `deliver a; fail a; work; first a; drain → ledger a`},
		{"parked after crashes, which it keeps", `deliver a; crash a; crash a; crash a; crash a; work; deliver a; work → a parked`},
		{"unhandled", `deliver a odd; work; deploy handled; deliver a; drain → ledger a`},
		{"unhandled, to one that works first", `first a odd; deploy handled; first a; drain → ledger a`},
		{"unhandled, and there is still no handler", `first a odd; first a odd; deliver a; work → a unhandled`},
		{"discarded", `deliver a; discard a pending; deliver a; first a; work → a discarded`},
		{"discarded, and without a handler", `first a odd; first b broken; discard unhandled parked; first a; first b; work → a discarded, b discarded`},
		{"with another body", `deliver a; mistake a; work; mistake a → ledger a`},
		{"with another body, once done", `deliver a; work; mistake a → ledger a`},
		{"with another body, parked", `deliver a; fail a; work; mistake a; work → ledger a`},
	}...)
}

func TestAFirstTryIsDoneOrStoredAndCountsNothing(t *testing.T) {
	play(t, []script{
		{"done", `first a; first a; deliver a → ledger a`},
		{"it failed, and all its attempts are left", `fail a error error error; first a; work → ledger a`},
		{"for good, it said", `fail a final; first a; drain → ledger a`},
		{"at a time, it said", `fail a later; first a; drain → ledger a`},
		{"an earlier one is pending", `deliver a; first b; work → ledger a b`},
		{"an earlier one is parked", `deliver a; fail a; work; first b; first b; deliver c; work → a parked, b pending, c pending`},
		{"an earlier one waits for its time", `deliver a; fail a later; drain; first b; drain → a pending, b pending`},
		{"it is the earlier one itself", `deliver b late; first a early; work → ledger a b`},
		{"of another entity", `deliver a; fail a; work; first b o2 → a parked, ledger b`},
		{"without a handler", `first a odd; first b → a unhandled, ledger b`},
		{"one that does not decode holds its entity", `first a broken; first b; work → a parked, b pending`},
	}...)
}

func TestRequeueReplayAndDiscardDoWhatTheySay(t *testing.T) {
	const some = `deliver a; fail a; deliver b o2 odd; deliver c o3; fail c later; drain; deliver d o4; `
	play(t, []script{
		{"a replay takes what is parked or unhandled", some + `deploy handled; replay → c pending, d pending, ledger a b`},
		{"of one id", some + `replay a → b unhandled, c pending, d pending, ledger a`},
		{"of one type", some + `replay odd → a parked, b unhandled, c pending, d pending`},
		{"of an entity", some + `replay o1 → b unhandled, c pending, d pending, ledger a`},
		{"of one state", some + `replay parked → b unhandled, c pending, d pending, ledger a`},
		{"of two kinds that no event is", some + `replay a odd → a parked, b unhandled, c pending, d pending`},
		{"of pending events, of which workers know nothing", some + `replay pending; replay pending → a parked, b unhandled, ledger c d`},
		{"never of done or discarded ones", `deliver a; work; deliver b; discard b pending; replay done discarded; requeue done discarded; discard done discarded → b discarded, ledger a`},
		{"a replay leaves one behind an earlier one", `deliver a; deliver b; replay pending b; work → ledger a b`},
		{"and one that is parked behind another", `deliver b late; fail b; work; deliver a early; fail a; work; replay b → a parked, b parked`},
		{"it goes in the order of lanes", `deploy handled; deliver a; deliver b odd; replay pending → ledger a b`},
		{"what fails is counted", `deliver a; fail a; work; fail a error; replay; fail a panic; replay → a parked`},
		{"a new handler that fails", `first a odd; deploy handled; fail a error; replay → a parked`},
		{"a worker had died with it", `deliver a; crash a; fail a; replay pending → a parked`},
		{"a dry replay changes nothing", some + `dry; dry pending; dry b; deploy handled; dry; work → a parked, b unhandled, ledger c d`},
		{"a requeue is in time and place", `deliver a; deliver b; fail a; work; requeue a; drain → ledger a b`},
		{"a requeue does not wait for the time", `deliver a; fail a later; drain; requeue pending; drain → ledger a`},
		{"it gives all attempts anew", `deliver a; fail a error error final; work; requeue; fail a error error; work → ledger a`},
		{"and forgets crashes", `deliver a; crash a; crash a; crash a; requeue pending; crash a; crash a; work → ledger a`},
		{"it takes one, some or all", `deliver a; fail a; deliver b o2; fail b; deliver c o3; fail c; work; requeue a; requeue a; requeue o2; work; requeue; work → ledger a b c`},
		{"an unhandled one comes back to its lane", `deliver a odd; deliver b; fail b later; drain; deploy handled; requeue a; drain; work → ledger a b`},
		{"without an entity it waits for no other", `deliver a alone; fail a; deliver b alone; fail b; work; requeue b; work → a parked, ledger b`},
		{"a discard in the middle", `deliver a; deliver b; deliver c; fail a; work; discard b pending; requeue a; work → b discarded, ledger a c`},
		{"of all that wait", `deliver a; fail a; deliver b; deliver c; work; discard o1 parked pending → a discarded, b discarded, c discarded`},
		{"of one that a dead worker had claimed", `deliver a; crash a; deliver b; discard a pending; work → a discarded, ledger b`},
	}...)
}

func TestPausedEventsAreStoredAndBeginAtTheEndOfThePauseInTheirOrder(t *testing.T) {
	const (
		come  = `deliver a early; deliver b odd; deliver c late; deliver d o2; work; drain; `
		first = `first a early; first b odd; first c late; first d o2; work; `
	)
	play(t, []script{
		{"everything", `deploy handled; pause; ` + come + `resume; drain → ledger a b c d`},
		{"everything is stored, and nothing begins", `deploy handled; pause; ` + come + first + `work → a pending, b pending, c pending, d pending`},
		{"a type holds the later events of its entities", `deploy handled; pause odd; ` + come + `work → b pending, c pending, ledger a d`},
		{"and they go on in their order", `deploy handled; pause odd; ` + come + `resume odd; drain → ledger a b c d`},
		{"an entity", `deploy handled; pause o1; ` + come + `work → a pending, b pending, c pending, ledger d`},
		{"a type of an entity", `deploy handled; pause paid o2; ` + come + `work → d pending, ledger a b c`},
		{"neither", `deploy handled; pause odd o2; ` + come + `work → ledger a b c d`},
		{"first tries of everything", `deploy handled; pause; ` + first + `work → a pending, b pending, c pending, d pending`},
		{"first tries of a type", `deploy handled; pause odd; ` + first + `resume odd; drain → ledger a b c d`},
		{"first tries of an entity", `deploy handled; pause o1; ` + first + `resume o1; drain → ledger a b c d`},
		{"first tries of neither", `deploy handled; pause odd o2; ` + first + `work → ledger a b c d`},
		{"it is paused when it has come", `deliver a; pause; work; resume; drain → ledger a`},
		{"a pause takes the place of another", `pause; pause; deliver a; work; resume; drain → ledger a`},
	}...)
}

func TestAnEventThatKillsItsProcessIsParkedAndNoOther(t *testing.T) {
	play(t, []script{
		{"its third crash parks it", `deliver a; crash a; crash a; crash a; work → a parked`},
		{"its second does not", `deliver a; crash a; crash a; work → ledger a`},
		{"a handler that returns has killed nobody", `deliver a; crash a; crash a; fail a error; drain; crash a; crash a; work → ledger a`},
		{"its entity waits", `deliver a; deliver b; crash a; crash a; crash a; work → a parked, b pending`},
		{"but not with PassParked", `deploy pass; deliver a; deliver b; crash a; crash a; crash a; work → a parked, ledger b`},
		{"once it is parked, a replay tries it", `deliver a; crash a; crash a; crash a; work; replay → ledger a`},
	}...)
}
