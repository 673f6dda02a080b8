package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/zeltapay"
)

// message is a webhook on its way to the shop.
type message struct {
	from, event string // for people
	path        string
	body        []byte
	seal        func(h http.Header, body []byte) // proves its sender
}

func fromAsaas(event string, body any) message {
	return message{"Asaas", event, asaasPath, encode(body), func(h http.Header, _ []byte) {
		h.Set(asaas.TokenHeader, asaasToken)
	}}
}

func fromZeltapay(event zeltapay.EventType, body any) message {
	return message{"Zelta Pay", string(event), zeltapayPath, encode(body), func(h http.Header, body []byte) {
		zeltapay.Sign(h, body, zeltapaySecret, time.Now())
	}}
}

func encode(body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // the providers' types always encode
	}
	return b
}

// withToken returns the message with a guessed token.
func (m message) withToken(guess string) message {
	m.seal = func(h http.Header, _ []byte) { h.Set(asaas.TokenHeader, guess) }
	return m
}

// signedAt is the message with a signature that was made at another time.
func (m message) signedAt(at time.Time) message {
	m.seal = func(h http.Header, body []byte) { zeltapay.Sign(h, body, zeltapaySecret, at) }
	return m
}

// changed is the message with another body under the old signature.
func (m message) changed(old, changed string) message {
	original := m.body
	m.body = bytes.Replace(original, []byte(old), []byte(changed), 1)
	m.seal = func(h http.Header, _ []byte) { zeltapay.Sign(h, original, zeltapaySecret, time.Now()) }
	return m
}

// header is made anew for each delivery, as the providers do.
func (m message) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	m.seal(h, m.body)
	return h
}
