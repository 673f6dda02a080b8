package zeltapay_test

import (
	"bytes"
	"io"
	"net/http"
)

// withBody is r with a body to be read once.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}
