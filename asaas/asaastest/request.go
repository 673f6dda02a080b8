package asaastest

import (
	"bytes"
	"net/http"

	"github.com/paghooks/paghooks/asaas"
)

// Request makes the POST that delivers a body, with the webhook's token. It is
// good for a handler's ServeHTTP, where the URL may be a path alone, and for
// [http.Client.Do]. It comes from an address of Asaas's.
//
// A request is sent once: make another one to deliver the body again. It panics
// for a URL that is none.
func Request(url, token string, body []byte) *http.Request {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		panic("asaastest: " + err.Error())
	}
	r.RemoteAddr = asaas.OfficialAddresses()[0].Addr().String() + ":40000"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(asaas.TokenHeader, token)
	return r
}
