// Package providertest makes bodies and requests for tests of what gen makes of a
// spec. A generated package of tests (woovi/woovitest, say) wraps it.
package providertest

import (
	"bytes"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Change is what a test wants different in a body.
type Change = fixture.Change

// Set gives the field at a path, such as charge.value, a value of its kind, or nil.
// A json.RawMessage may be of any kind.
func Set(path string, value any) Change { return fixture.Set(path, value) }

// Add adds a field that events of the type do not have.
func Add(path string, value any) Change { return fixture.Add(path, value) }

// Delete leaves out the field at a path.
func Delete(path string) Change { return fixture.Delete(path) }

// Bodies are the bodies that gen made of a spec.
type Bodies struct{ file *fixture.File }

// Read reads generated bodies. It panics if they are damaged.
func Read(generated []byte) Bodies {
	f, err := fixture.Read(generated)
	if err != nil {
		panic("providertest: " + err.Error())
	}
	return Bodies{f}
}

// Types returns the event types that there are bodies of, in the order of the spec.
func (b Bodies) Types() []string { return b.file.Types() }

// Event returns a body that has every field. It panics where a change does not fit.
func (b Bodies) Event(eventType string, changes ...Change) []byte {
	return must(b.file.Full("", eventType, changes...))
}

// Sparse returns a body that has what is always sent, and no more.
func (b Bodies) Sparse(eventType string, changes ...Change) []byte {
	return must(b.file.Sparse("", eventType, changes...))
}

func must(body []byte, err error) []byte {
	if err != nil {
		panic("providertest: " + err.Error())
	}
	return body
}

// Request returns a request with a body, signed as the provider does. It panics
// where the secret cannot sign.
func Request(scheme provider.Scheme, url, secret string, body []byte) *http.Request {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err == nil {
		err = scheme.Sign(r.Header, body, secret, time.Now())
	}
	if err != nil {
		panic("providertest: " + err.Error())
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}
