package idem

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// setAside stores a body that must reach no handler, for people to see: a message of a broker that no relay
// has signed, for example. The body becomes the payload of a parked event of store.SetAsideType, with the cause
// as its error: health is red until the event is readmitted, discarded or acknowledged, and [Inbox.Prune]
// does not forget it by default. The same body is stored once. No source is asked about such an event.
//
// Beyond maxSetAside, and a few more at the same time, setAside returns an error, and the broker keeps the
// message.
func (i *Inbox) setAside(ctx context.Context, body []byte, cause error) error {
	n, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.CountSetAside(ctx, db, i.source.Name(), maxSetAside)
	})
	switch {
	case err != nil:
		return fmt.Errorf("idem: counting what is set aside: %w", store.Explain(err))
	case n >= maxSetAside:
		return fmt.Errorf("idem: %d messages are set aside, and no further one is: see why with idem list -type %s, then readmit or discard them", n, store.SetAsideType)
	}
	e := Event{
		ID:      BodyID([]byte(store.SetAsideType + "\n" + string(body))), // no event with an ID made of its body has this ID
		Type:    store.SetAsideType,
		Payload: body,
	}
	_, err = i.receive(ctx, delivery{event: e}, storeTime, func(ctx context.Context, e Event) result {
		return i.storeUnprocessed(ctx, e, StateParked, cause)
	})
	return err
}

// maxSetAside is the number of bodies that may be set aside at a time.
const maxSetAside = 1000
