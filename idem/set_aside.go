package idem

import "context"

// SetAside stores a body that must reach no handler, for people to see: a message of a
// broker that no relay has signed, for example. It becomes an unhandled event of
// [SetAsideType], with the cause as its error. The same body is stored once.
func (c *Common) SetAside(ctx context.Context, body []byte, cause error) error {
	e := Event{
		ID:      BodyID([]byte(SetAsideType + "\n" + string(body))), // that of no event with an ID made of its body
		Type:    SetAsideType,
		Payload: body,
	}
	_, err := c.receive(ctx, Delivery{Event: e}, storeTime, func(ctx context.Context, e Event) result {
		return c.storeUnprocessed(ctx, e, StateUnhandled, cause)
	})
	return err
}
