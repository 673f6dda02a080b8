package zeltapay

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/canary"
)

// NewCanary returns a canary for a webhook: address is its URL at Zelta Pay,
// secret one that the receiver verifies with. Each delivery is signed anew, in both
// formats, so that it verifies with any [Verifier].SignedFormat.
func NewCanary(address, secret string) *canary.Canary {
	body, _ := json.Marshal(map[string]string{ // texts
		"type": idem.CanaryType, "eventId": "evt_canary_" + rand.Text(), "createdAt": time.Now().UTC().Format(time.RFC3339),
	})
	return canary.New(definition.Source, address, body, func(h http.Header, body []byte) {
		now, plain := time.Now(), make(http.Header)
		FormatPlain.Sign(plain, body, secret, now)
		_, code, _ := strings.Cut(plain.Get(schemeHMAC.Header), ", ")
		Sign(h, body, secret, now)
		h.Set(schemeHMAC.Header, h.Get(schemeHMAC.Header)+", "+code)
	})
}
