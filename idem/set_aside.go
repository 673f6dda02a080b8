package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// maxSetAside is the number of bodies that may be set aside at a time.
const maxSetAside = 1000

// SetAside stores a body that must reach no handler, for people to see: a message of a
// broker that no relay has signed, for example. It becomes a parked event of
// [SetAsideType], with the cause as its error: health is red until it is readmitted, discarded
// or acknowledged, and no [Common.Prune] forgets it by default. The same body is stored once.
//
// About 1,000 are set aside at a time. Then it returns an error, and the broker keeps what comes.
func (c *Common) SetAside(ctx context.Context, body []byte, cause error) error {
	if err := c.aside.admit(ctx, c); err != nil {
		return err
	}
	e := Event{
		ID:      BodyID([]byte(SetAsideType + "\n" + string(body))), // that of no event with an ID made of its body
		Type:    SetAsideType,
		Payload: body,
	}
	_, err := c.receive(ctx, Delivery{Event: e}, storeTime, func(ctx context.Context, e Event) result {
		return c.storeUnprocessed(ctx, e, StateParked, cause)
	})
	return err
}

// errSetAside is the error of a body that was set aside, where a handler is looked for.
var errSetAside = errors.New("it was set aside, and reaches no handler: see idem readmit, or discard it")

// asideCount knows about how many bodies are set aside.
type asideCount struct {
	mu     sync.Mutex
	n      int64
	looked time.Time // when they were counted
}

// lookAsideEvery is the time for which a count is believed.
const lookAsideEvery = 10 * time.Second

// admit returns an error if no further body may be set aside.
func (a *asideCount) admit(ctx context.Context, c *Common) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) > lookAsideEvery {
		n, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
			return store.CountSetAside(ctx, db, c.source.Name(), maxSetAside)
		})
		if err != nil {
			return fmt.Errorf("idem: counting what is set aside: %w", explain(err))
		}
		a.n, a.looked = n, time.Now()
	}
	if a.n >= maxSetAside {
		return fmt.Errorf("idem: %d messages are set aside, and no further one is: see why with idem list -type %s, then readmit or discard them", a.n, SetAsideType)
	}
	a.n++
	return nil
}
