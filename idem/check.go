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
	Says    string `json:"says"` // the result; if it is not healthy, also what to do
	Cause   error  `json:"-"`    // for the log only, because it may name hosts and users; nil of most
}

// Limits are what a part is measured by when it says how it is. Package health has the
// defaults.
type Limits struct {
	// MaxFailures is the number of failed deliveries in a row that fails the check;
	// 0 turns it off. Asaas stops its queue after 15. Default: 5.
	MaxFailures int

	// MaxRetrying is how long an event may be retrying, since its first delivery; 0
	// turns the check off. Asaas stops its queue after half a day. Default: 10
	// minutes.
	MaxRetrying time.Duration

	// MaxPending is how long an event may be due, in addition to the Timeout of the
	// receiver; 0 turns the check off, and that of the clock. Default: 5 minutes.
	MaxPending time.Duration

	// MaxSpooled is how long an event may be in a [Spool], while Postgres does not take
	// it; 0 turns the check off. Default: 1 minute.
	MaxSpooled time.Duration

	// Timeout is how long each query to Postgres may take. Default: 2 seconds.
	Timeout time.Duration
}
