package asaas

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// NewCanary returns a canary for a webhook: address is its URL at Asaas, token
// what the receiver verifies with. The token is sent there, so let it be https.
//
// With [Dispatcher].AllowFrom set, add the address that the canary comes from.
func NewCanary(address, token string) *idem.Canary {
	now := DateTime(time.Now().In(Brasilia()).Format(time.DateTime))
	body, _ := json.Marshal(Envelope{ID: "evt_canary_" + rand.Text(), Event: idem.CanaryType, DateCreated: now}) // three texts
	return idem.NewCanary(sourceName, address, body, func(h http.Header, _ []byte) { h.Set(TokenHeader, token) })
}
