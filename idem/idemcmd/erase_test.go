package idemcmd

import (
	"testing"

	"github.com/paghooks/paghooks/internal/command"
)

func TestEraseAsksAlsoAboutASingleEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.wantSays(command.Misused, "nobody is at a terminal to confirm it", "erase", "-reason", "request 17", "bad_2", "-discard")
	s.types = "n\n"
	s.wantSays(command.Failed, "Erase this event?", "erase", "-reason", "request 17", "bad_2", "-discard")
	s.wantText(`select state from idem_events where event like '%/bad_2'`, "parked")
	s.types = "y\n"
	s.wantSays(command.Done, "This cannot be undone.\nNot reached: brokers", "erase", "-reason", "request 17", "-as", "ana", "bad_2", "-discard")
	s.wantText(`select state || ': ' || last_error from idem_events where event like '%/bad_2'`, "discarded: discarded: erased")
	s.wantText(`select string_agg(actor || ' ' || action || ' ' || events::text || ' ' || reason || ': ' || result, ', ') from idem_audit`,
		"ana erase {notes//bad_2} request 17: 1 erased")
}

func TestEraseIsToldWhatAndWhy(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.wantSays(command.Misused, "give a -reason", "erase", "-yes", "bad_2")
	s.wantSays(command.Misused, "say what to erase", "erase", "-yes", "-reason", "request 17")
	s.wantSays(command.Misused, "say what to erase", "erase", "-yes", "-reason", "request 17", "-account", "store-2")
	s.wantSays(command.Nothing, "no event matched", "erase", "-yes", "-reason", "request 17", "-entity", "pay_9")
	s.wantText(`select count(*) from idem_payloads where source <> ''`, "6")
	s.wantText(`select count(*) from idem_audit`, "0")
}
