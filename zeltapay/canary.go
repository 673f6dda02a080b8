package zeltapay

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/canary"
)

// NewCanary returns a canary for a webhook: address is its URL at Zelta Pay,
// secret what the receiver verifies with. Each delivery is signed anew, in both
// formats, so that it verifies whatever [Verifier].SignedFormat is.
func NewCanary(address, secret string) *canary.Canary {
	body, _ := json.Marshal(map[string]string{ // texts
		"type": idem.CanaryType, "eventId": "evt_canary_" + rand.Text(), "createdAt": time.Now().UTC().Format(time.RFC3339),
	})
	return canary.New(sourceName, address, body, func(h http.Header, body []byte) {
		now := time.Now()
		Sign(h, body, secret, now)
		plain := mac(secret, "", strconv.FormatInt(now.Unix(), 10), body)
		h.Set(headerSignature, h.Get(headerSignature)+", v1="+hex.EncodeToString(plain))
	})
}
