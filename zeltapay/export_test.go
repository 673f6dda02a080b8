package zeltapay

import (
	"cmp"

	"github.com/paghooks/paghooks/idem"
)

// HeadIn is the event that a decoded body is.
func HeadIn(e Event, body []byte) idem.Event {
	v := e.envelope()
	out := idem.Event{Source: "zeltapay", ID: v.EventID.Or(""), Type: string(v.Type), Payload: body}
	times := []Time{v.CreatedAt.Or("")}
	switch e := e.(type) {
	case *PaymentEvent:
		out.Key = e.LinkID()
		if id := e.transaction().ID.Or(""); out.ID == "" && id != "" {
			out.ID = "payment.success:" + id
		}
		if e.IsTest() {
			out.Type = "payment.success:test"
		}
		times = append(times, e.transaction().PaidAt.Or(""), e.transaction().CompletedAt.Or(""))
	case *PingEvent:
		times = append(times, e.SentAt.Or(""))
	}
	out.ID = cmp.Or(out.ID, idem.BodyID(body))
	for _, t := range times {
		if at, err := t.Time(); err == nil {
			out.OccurredAt = at
			break
		}
	}
	return out
}
