package asaas

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/canary"
)

// NewCanary returns a canary for a webhook: address is its URL at Asaas, token
// one that the receiver accepts. The token is sent there, so let it be https.
//
// With [Dispatcher].AllowFrom set, add the address that the canary comes from.
func NewCanary(address, token string) *canary.Canary {
	now := DateTime(time.Now().In(Brasilia()).Format(time.DateTime))
	body, _ := json.Marshal(Envelope{ID: "evt_canary_" + rand.Text(), Event: idem.CanaryType, DateCreated: now}) // three texts
	return canary.New(definition.Source, address, body, func(h http.Header, _ []byte) { h.Set(TokenHeader, token) })
}
