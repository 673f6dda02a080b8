package idem

import "time"

// Check is a part's answer to one question of how it is: whether its deliveries
// succeed, for example. Package health asks, by a method that any part may have:
//
//	Examine(ctx context.Context, limits idem.Limits) []idem.Check
type Check struct {
	Source  string `json:"source"` // the source's name, or the part's
	Name    string `json:"check"`  // "postgres" and so on, see package health
	Healthy bool   `json:"healthy"`
	Says    string `json:"says"` // the result; if it is not healthy, also the remedy
	Cause   error  `json:"-"`    // may name hosts and users: for the log, no report has it; nil of most
}

// Limits are the limits that a part is measured by in its report. Package health has the
// defaults.
type Limits struct {
	// MaxFailures is the number of failed deliveries in a row, of refused ones, and of
	// events in a row that workers failed to process, that fails the check of each; 0 turns
	// them off. Asaas stops its queue after 15 deliveries. Default: 5.
	MaxFailures int

	// MaxRetrying is the longest time that an event may fail, since its first delivery, until
	// it succeeds or is parked; 0 turns the check off. Asaas stops its queue after half
	// a day. Default: 10 minutes.
	MaxRetrying time.Duration

	// MaxParked is the number of parked events that fails the check, without those that
	// wait behind another one, and those that a person has acknowledged, see
	// operator.Operator.Acknowledge; 0 turns it off. Default: 1.
	MaxParked int

	// MaxPending is the longest time that an event may be due, in addition to the Timeout of the
	// receiver; 0 turns the check off, and that of the clock. Default: 5 minutes.
	MaxPending time.Duration

	// MaxSilence returns how long no genuine delivery may come to this process until a
	// time, in that time's zone; 0 is any. A small shop has quiet Sundays, so the default
	// is nil: the check is off. Of several processes each sees a part.
	//
	//	h.MaxSilence = func(at time.Time) time.Duration {
	//		if at = at.In(asaas.Brasilia()); at.Weekday() == time.Sunday || at.Hour() < 8 {
	//			return 0
	//		}
	//		return 2 * time.Hour
	//	}
	MaxSilence func(at time.Time) time.Duration

	// Timeout limits each query to Postgres. Default: 2 seconds.
	Timeout time.Duration
}
