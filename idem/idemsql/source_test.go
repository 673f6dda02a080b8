package idemsql_test

import (
	"net/http"

	"github.com/paghooks/paghooks/idem"
)

// noteRoutes is a source with one handler.
type noteRoutes struct{ work idem.Work }

func (*noteRoutes) Name() string                          { return "notes" }
func (*noteRoutes) Ignores(string) bool                   { return false }
func (r *noteRoutes) Route(idem.Event) (idem.Work, error) { return r.work, nil }

// Open takes the body for the event's ID.
func (r *noteRoutes) Open(req *http.Request) (idem.Event, error) {
	body, err := idem.ReadBody(req)
	return idem.Event{ID: string(body), Type: "NOTE", Payload: body}, err
}
