package provider

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/paghooks/paghooks/examples/provider/woovi"
	"github.com/paghooks/paghooks/examples/provider/woovi/woovitest"
	"github.com/paghooks/paghooks/idem/provider/providertest"
)

// key returns a private key, which signs, and verifies as its public key does.
func key(t *testing.T) string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// What gen has made keeps the promises that all providers of paghooks keep.
func TestWooviKeepsThePromisesOfProviders(t *testing.T) {
	t.Parallel()
	p := providertest.Of(woovi.NewDispatcher, woovi.Verify, woovi.Identify, woovi.Parse,
		woovitest.Types(), woovitest.Event, woovitest.Sparse, woovitest.Request)
	p.Secrets = [2]string{key(t), key(t)}
	p.Essential = map[string][]string{
		"OPENPIX:CHARGE_COMPLETED":   {"charge", "charge.correlationID", "charge.status", "charge.value"},
		"OPENPIX:MOVEMENT_CONFIRMED": {"payment", "payment.correlationID"},
		"OPENPIX:DISPUTE_CREATED":    nil,
	}
	p.Personal = map[string][]string{
		"OPENPIX:CHARGE_COMPLETED": {"charge.customer.name", "charge.customer.taxID.taxID"},
	}
	providertest.Run(t, p)
}
