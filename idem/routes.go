package idem

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Routes is the table from event type to handler. A provider's Dispatcher
// embeds one; its zero value is an empty table.
//
// Handlers are registered before the first event is routed. Registering twice,
// registering nil, or registering afterwards is a mistake in the program, and
// panics.
type Routes struct {
	mu     sync.Mutex
	sealed bool // an event was routed: the tables are only read from then on

	families map[string]handler // by event type, as the others
	routes   map[string]handler
	others   handler
	accepts  func(eventType string) bool
	ignored  map[string]bool
	aliases  map[string]string
}

// Handle registers h for one event type. The event's body is decoded into a
// new E with encoding/json; a body that does not decode never reaches h. If *E has a method
// Check(body []byte) error, which returns an error for a body without what makes it this event,
// as the generated events have, the event is parked for that error.
//
// The generated On… methods call it. Call it yourself for an event type that
// is newer than this module:
//
//	idem.Handle(&events.Routes, "PAYMENT_SOMETHING_NEW",
//		func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error { … })
func Handle[E any](r *Routes, eventType string, h Handler[*E]) {
	if h == nil {
		panic(fmt.Sprintf("idem: the handler for %q is nil", eventType))
	}
	r.register(func() {
		eventType := r.canonical(eventType)
		if r.taken(eventType) {
			panic(fmt.Sprintf("idem: %q has a handler already, or is ignored: register each event type once", eventType))
		}
		r.routes[eventType] = bind(h)
	})
}

// HandleFamily registers h for several event types whose events are about one thing and have
// one struct. It runs before the handler of the event's own type, if there is one, in the same
// transaction: an error of either fails the event, and nothing of both stays. The two get the
// same *E, decoded once. [Routes.Ignore], before or afterwards, takes a type out.
//
// The generated methods that are named after a struct, such as OnPayment of package asaas, call it
// with all types that they know. A type that is newer is not among them.
func HandleFamily[E any](r *Routes, eventTypes []string, h Handler[*E]) {
	if h == nil {
		panic(fmt.Sprintf("idem: the handler for all events of %T is nil", *new(E)))
	}
	r.register(func() {
		family := bind(h)
		for _, t := range eventTypes {
			t = r.canonical(t)
			if r.families[t] != nil {
				panic(fmt.Sprintf("idem: %q has a handler for all events of %T already: register each family once", t, *new(E)))
			}
			r.families[t] = family
		}
	})
}

// HandleOthers registers h for the event types that have no handler of their
// own, are not ignored, and that accepts approves of.
func HandleOthers[E any](r *Routes, accepts func(eventType string) bool, h Handler[*E]) {
	if h == nil || accepts == nil {
		panic("idem: the handler for other events is nil")
	}
	r.register(func() {
		if r.others != nil {
			panic("idem: the handler for other events is registered already")
		}
		r.others, r.accepts = bind(h), accepts
	})
}

// checker is implemented by events with required fields. Generated events implement
// it; a struct of the application's own need not.
type checker interface {
	// Check returns an error if body, which was decoded into the event, has
	// null or nothing in place of a field that is essential to the event, so
	// that a handler would see a zero that was not sent. The event is parked.
	Check(body []byte) error
}

// handler is a Handler without the type of its events. It returns its work with an event, and the decoded event.
// It takes decoded, which may be nil, for the event if it is of its type.
type handler func(e Event, decoded any) (Work, any, error)

func bind[E any](h Handler[*E]) handler {
	return func(e Event, decoded any) (Work, any, error) {
		v, ok := decoded.(*E)
		if !ok {
			var err error
			if v, err = decode[E](e); err != nil {
				return nil, nil, err
			}
		}
		return func(ctx context.Context, tx pgx.Tx) error { return h(ctx, tx, v) }, v, nil
	}
}

func decode[E any](e Event) (*E, error) {
	v := new(E)
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return nil, fmt.Errorf("idem: the body does not decode into %T: %w", v, err)
	}
	if c, ok := any(v).(checker); ok {
		if err := c.Check(e.Payload); err != nil {
			return nil, fmt.Errorf("idem: a %s is not complete: %w", e.Type, err)
		}
	}
	return v, nil
}

// Ignore acknowledges events of these types without storing anything. Without
// it, events that have no handler are stored for [Inbox.Replay]. The handler of a family does
// not get them, see [HandleFamily]. One that was stored before is done without a handler.
func (r *Routes) Ignore(eventTypes ...string) {
	r.register(func() {
		for _, t := range eventTypes {
			t = r.canonical(t)
			if r.taken(t) {
				panic(fmt.Sprintf("idem: %q has a handler, or is ignored already", t))
			}
			r.ignored[t] = true
		}
	})
}

// Handles reports whether an event type has a handler of its own, or its family's.
func (r *Routes) Handles(eventType string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.canonical(eventType)
	return !r.ignored[t] && (r.routes[t] != nil || r.families[t] != nil)
}

// Ignores implements [Source]: it reports whether events of a type are acknowledged
// without being stored.
func (r *Routes) Ignores(eventType string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ignored[r.canonical(eventType)]
}

// alias makes other another name of eventType, so that a caller that registers a handler for
// it, or ignores it, means the type. It is for the packages of providers with events that
// have the one name whichever was sent: they call it before they hand the Routes out.
func (r *Routes) alias(other, eventType string) {
	r.register(func() { r.aliases[other] = eventType })
}

// Types lists the event types that have a handler, sorted: those to subscribe
// to at the provider.
func (r *Routes) Types() []string { return r.handled() }

// handled is Types, which the providers' dispatchers replace by one of their own types.
func (r *Routes) handled() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	types := slices.Collect(maps.Keys(r.routes))
	for t := range r.families {
		if r.routes[t] == nil && !r.ignored[t] {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

// Route implements [Source].
func (r *Routes) Route(e Event) (Work, error) {
	r.seal()
	if r.ignored[e.Type] {
		return nil, nil
	}
	first, second := r.families[e.Type], r.routes[e.Type]
	if first == nil {
		first, second = second, nil
	}
	if first == nil && r.others != nil && r.accepts(e.Type) {
		first = r.others
	}
	if first == nil {
		return nil, nil
	}
	work, decoded, err := first(e, nil)
	if err != nil || second == nil {
		return work, err
	}
	last, _, err := second(e, decoded)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx pgx.Tx) error {
		if err := work(ctx, tx); err != nil {
			return err
		}
		return last(ctx, tx)
	}, nil
}

// canonical returns the name that the events of a type have.
func (r *Routes) canonical(eventType string) string {
	return cmp.Or(r.aliases[eventType], eventType)
}

func (r *Routes) taken(eventType string) bool {
	return r.routes[eventType] != nil || r.ignored[eventType]
}

func (r *Routes) register(add func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		panic("idem: handlers are registered before the first event arrives")
	}
	if r.routes == nil {
		r.families, r.routes = make(map[string]handler), make(map[string]handler)
		r.ignored, r.aliases = make(map[string]bool), make(map[string]string)
	}
	add()
}

// seal ends registration: its caller may read the tables without the lock.
func (r *Routes) seal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = true
}
