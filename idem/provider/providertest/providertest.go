// Package providertest makes bodies and requests for tests of a package that gen makes of a
// spec. A generated package of tests (woovi/woovitest, say) wraps it.
package providertest

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Change is a difference that a test wants in a body.
type Change = fixture.Change

// Set gives the field at a path, such as charge.value, a value of its kind, or nil.
// A json.RawMessage may be of any kind.
func Set(path string, value any) Change { return fixture.Set(path, value) }

// Add adds a field that events of the type do not have.
func Add(path string, value any) Change { return fixture.Add(path, value) }

// Delete leaves out the field at a path.
func Delete(path string) Change { return fixture.Delete(path) }

// Bodies are the bodies that gen made of a spec.
type Bodies struct {
	name, layout string
	file         func() *fixture.File
}

// Read reads generated bodies, once they are asked for. Panics begin with name.
func Read(name string, generated []byte) Bodies {
	return Bodies{name: name, file: sync.OnceValue(func() *fixture.File {
		f, err := fixture.Read(generated)
		if err != nil {
			panic(name + ": " + err.Error())
		}
		return f
	})}
}

// In has the bodies in another layout, where events come in several.
func (b Bodies) In(layout string) Bodies {
	b.layout = layout
	return b
}

// Types returns the event types that there are bodies of, in the order of the spec.
func (b Bodies) Types() []string { return b.file().Types() }

// Event returns a body that has every field. It panics where a change does not fit.
func (b Bodies) Event(eventType string, changes ...Change) []byte {
	return b.must(b.file().Full(b.layout, eventType, changes...))
}

// Sparse returns a body that has the fields that are always sent, and no more.
func (b Bodies) Sparse(eventType string, changes ...Change) []byte {
	return b.must(b.file().Sparse(b.layout, eventType, changes...))
}

func (b Bodies) must(body []byte, err error) []byte {
	if err != nil {
		panic(b.name + ": " + err.Error())
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
