//go:build long

package charges_test

import (
	"testing"

	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestMoreLivesEndTrueThroughEitherReceiver(t *testing.T) {
	t.Parallel()
	inAnyOrder(t, "a chargeback, not disputed", "a Pix, a part asked back and given back", "removed and restored, then paid", "cash, undone")
}

// Whatever message of Postgres's gets lost, a charge is booked once.
func TestALifeIsBookedOnceHoweverConnectionsEnd(t *testing.T) {
	t.Parallel()
	for _, life := range asaastest.Lives("order-1") {
		if life.Name == "a Pix" {
			idemtest.ExactlyOnce(t, newShop(t), life.Requests("/webhooks/asaas", "token"), hasEnded(life))
			idemtest.ExactlyOnceInbox(t, newShop(t), life.Requests("/webhooks/asaas", "token"), hasEnded(life))
		}
	}
}
