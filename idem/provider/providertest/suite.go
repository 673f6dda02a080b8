package providertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/provider"
)

// Provider is a package that gen has made, for [Run]. [Of] sets what each has.
type Provider struct {
	New      func(secrets ...string) Dispatcher // NewDispatcher
	Verify   func(h http.Header, body []byte, secrets ...string) error
	Identify func(body []byte) idem.Event
	Parse    func(body []byte) (event any, err error)

	// Of the package of tests.
	Types         []string
	Event, Sparse func(eventType string, changes ...Change) []byte
	Request       func(url, secret string, body []byte) *http.Request

	// Secrets are two that sign and verify.
	Secrets [2]string

	// Named returns the names that the event of a body must have.
	Named func(body map[string]any) (id, key string)

	// Essential holds the paths that an event is nothing without, by an event type of each struct:
	// where one is null or missing the event does not reach its handler, and without any other it does.
	Essential map[string][]string

	// Personal holds the paths of texts that are not printed, by event type.
	Personal map[string][]string

	// Free are the paths of objects that the application fills.
	Free []string

	// Changes are bodies that the provider might send one day in place of Original.
	Original []byte
	Changes  []Changed
}

// Of returns the Provider of a generated package and its package of tests:
//
//	p := providertest.Of(acme.NewDispatcher, acme.Verify, acme.Identify, acme.Parse,
//		acmetest.Types(), acmetest.Event, acmetest.Sparse, acmetest.Request)
func Of[D Dispatcher, T ~string, E any](
	newDispatcher func(secrets ...string) D,
	verify func(h http.Header, body []byte, secrets ...string) error,
	identify func(body []byte) idem.Event,
	parse func(body []byte) (E, error),
	types []T,
	event, sparse func(eventType T, changes ...Change) []byte,
	request func(url, secret string, body []byte) *http.Request,
) Provider {
	p := Provider{
		New:      func(secrets ...string) Dispatcher { return newDispatcher(secrets...) },
		Verify:   verify,
		Identify: identify,
		Parse:    func(body []byte) (any, error) { return parse(body) },
		Event:    func(eventType string, changes ...Change) []byte { return event(T(eventType), changes...) },
		Sparse:   func(eventType string, changes ...Change) []byte { return sparse(T(eventType), changes...) },
		Request:  request,
		Secrets:  [2]string{"s3cret-of-the-webhook", "an0ther-s3cret"},
	}
	for _, t := range types {
		p.Types = append(p.Types, string(t))
	}
	return p
}

// Changed is one change in a body.
type Changed struct {
	Reason   string
	Old, New string // what is replaced in the body, once
	State    string // done, parked for an error, or unhandled: no handler knows it, or it cannot be read
	Error    string // is in the error with which it is parked
	Found    string // the drift: "kind path, kind path"
}

// Dispatcher is the part of a generated Dispatcher that all have.
type Dispatcher interface {
	idem.Source
	Dispatch(ctx context.Context, tx pgx.Tx, e idem.Event) error
	Verify(h http.Header, body []byte) error
	Configured() error
	Drift() []drift.Finding
}

// Run tests what every generated package promises: that each body is named, reaches its handler whole and no
// other, is handled whatever it lacks, and not where that is essential; that nothing that is printed shows a
// secret or a person; and that nothing verifies but what one of the secrets has signed. It needs no database.
func Run(t *testing.T, p Provider) {
	t.Helper()
	s := suite{Provider: p, on: handlers(p)}
	for name, test := range map[string]func(*testing.T){
		"each body is named":                             s.named,
		"each body reaches its handler":                  s.handled,
		"no field is lost":                               s.kept,
		"news are told, and only news":                   s.news,
		"what changes is handled or told":                s.changed,
		"only what is essential parks":                   s.essential,
		"every change of every value is absorbed":        s.absorbed,
		"nothing that is printed shows a person":         s.persons,
		"nothing that is printed shows a secret":         s.secrets,
		"a dispatcher knows that it cannot verify":       s.configured,
		"a secret verifies, and no other":                s.verified,
		"a changed body is refused":                      s.altered,
		"an empty secret verifies nothing":               s.empty,
		"headers are read in any case, and once":         s.headers,
		"a time out of tolerance is refused":             s.times,
		"the secret decides the scope":                   s.scopes,
		"the request decides the accounts":               s.accounts,
		"the body of a stranger is not read":             s.strangers,
		"a refusal shows no secret and no signature":     s.refusals,
		"a dispatcher that is not set up refuses events": s.unset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

type suite struct {
	Provider
	on map[string]string // the On… method of each event type
}

// handlers returns the On… method of each event type, without those of a family.
func handlers(p Provider) map[string]string {
	out := make(map[string]string)
	for m := range reflect.TypeOf(p.New()).Methods() {
		if strings.HasPrefix(m.Name, "On") && m.Name != "OnUnknown" {
			d := p.New()
			register(d, m.Name, nil)
			if types := settings(d).Routes.Types(); len(types) == 1 {
				out[types[0]] = m.Name
			}
		}
	}
	return out
}

// register gives an On… method a handler that hands its event to got.
func register(d Dispatcher, method string, got func(event any)) {
	on := reflect.ValueOf(d).MethodByName(method)
	on.Call([]reflect.Value{reflect.MakeFunc(on.Type().In(0), func(args []reflect.Value) []reflect.Value {
		got(args[2].Interface())
		return []reflect.Value{reflect.Zero(reflect.TypeFor[error]())}
	})})
}

// settings returns what a generated Dispatcher embeds.
func settings(d Dispatcher) *provider.Dispatcher {
	return reflect.ValueOf(d).Elem().FieldByName("Dispatcher").Addr().Interface().(*provider.Dispatcher)
}

// got is an event that a handler got.
type got struct {
	method string
	event  any
}

// dispatcher has a handler for each type, which adds to what it returns.
func (s suite) dispatcher(secrets ...string) (Dispatcher, *[]got) {
	d, all := s.New(secrets...), new([]got)
	for _, method := range s.on {
		register(d, method, func(event any) { *all = append(*all, got{method, event}) })
	}
	settings(d).AllowTest = true
	settings(d).Logger = nil
	return d, all
}

// bodies runs a test with each body that there is.
func (s suite) bodies(t *testing.T, test func(t *testing.T, eventType string, body []byte)) {
	t.Helper()
	for _, eventType := range s.Types {
		t.Run(eventType+"/full", func(t *testing.T) { test(t, eventType, s.Event(eventType)) })
		t.Run(eventType+"/sparse", func(t *testing.T) { test(t, eventType, s.Sparse(eventType)) })
	}
}

// request is a delivery of a body.
func (s suite) request(secret string, body []byte) *http.Request {
	return s.Request("/webhooks", secret, body)
}

func (s suite) scheme() provider.Scheme { return settings(s.New()).Scheme }

// verifies skips a test of a scheme that verifies nothing.
func (s suite) verifies(t *testing.T) provider.Scheme {
	t.Helper()
	if s.scheme() == (provider.None{}) {
		t.Skip("anybody may deliver")
	}
	return s.scheme()
}

// reason returns the reason of a refusal, "" without an error.
func reason(t *testing.T, err error) idem.Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	refusal, ok := errors.AsType[*idem.Refusal](err)
	if !ok {
		t.Errorf("the error is no refusal: %v", err)
		return idem.Reason(fmt.Sprint(err))
	}
	if refusal.Hint == "" || refusal.Source == "" {
		t.Errorf("the refusal %q has the source %q and the hint %q", refusal.Reason, refusal.Source, refusal.Hint)
	}
	return refusal.Reason
}
