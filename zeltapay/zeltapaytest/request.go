package zeltapaytest

import (
	"bytes"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

const (
	headerSignature = "Zeltapay-Signature"
	headerTimestamp = "Zeltapay-Timestamp"
	headerEventID   = "Zeltapay-Event-Id"
	headerEventType = "Zeltapay-Event-Type"
	headerAttempt   = "Zeltapay-Delivery-Attempt"
)

// Request makes the POST that delivers a body, signed now with the webhook's
// secret, see [zeltapay.Sign]. It is good for a handler's ServeHTTP, where the
// URL may be a path alone, and for [http.Client.Do].
//
// A body without an eventId gets one in its header, as Zelta Pay does, another
// one for each request.
//
// A request is sent once: make another one to deliver the body again. It panics
// for a URL that is none.
func Request(url, secret string, body []byte) *http.Request {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		panic("zeltapaytest: " + err.Error())
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(headerAttempt, "1")
	zeltapay.Sign(r.Header, body, secret, time.Now())
	if r.Header.Get(headerEventID) == "" {
		r.Header.Set(headerEventID, newID())
	}
	return r
}
