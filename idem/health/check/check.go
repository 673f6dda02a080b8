// Package check holds the types that package health and the parts of a program share. A part that says how it
// is has the method
//
//	Examine(ctx context.Context, limits check.Limits) []check.Result
package check

import "time"

// Result is the result of one check of a part: that its deliveries succeed, for example.
type Result struct {
	Source  string `json:"source"` // the source's name, or the part's
	Name    string `json:"check"`  // "postgres" and so on, see package health
	Healthy bool   `json:"healthy"`
	Warning bool   `json:"warning,omitempty"` // it is healthy, and somebody should look at it soon: package doctor and the page show it
	Unknown bool   `json:"unknown,omitempty"` // it is healthy as far as is known, because it could not be looked at
	Says    string `json:"says"`              // the result; in parts of the application's own with the remedy
	Remedy  string `json:"remedy,omitempty"`  // what to do, in words
	Command string `json:"command,omitempty"` // to be typed as it is
	Cause   error  `json:"-"`                 // for the log: it may name hosts and users, and no report has it; often nil

	Count *int64 `json:"count,omitempty"` // the number of what is wrong, for a metric; nil where nothing is counted
}

// String returns what it says and what to do, in one line.
func (r Result) String() string { return line(r.Says, r.Remedy, r.Command) }

// Limits are the limits of a part's checks. Package health has the defaults.
type Limits struct {
	// MaxFailures is the number of failed deliveries in a row, of refused ones, and of events in a row that
	// workers failed to process, that fails each of the three checks; 0 turns them off. Asaas stops its queue
	// after 15 deliveries. Default: 5.
	MaxFailures int

	// MaxFailing is the longest time from the first delivery of a failing event until it succeeds or is
	// parked; 0 turns the check off. Asaas stops its queue after half a day. Default: 10 minutes.
	MaxFailing time.Duration

	// MaxParked is the number of parked events that fails the check, without events that wait behind another,
	// and events that a person has acknowledged, see operator.Operator.PlanAcknowledge; 0 turns the check off.
	// Default: 1.
	MaxParked int

	// MaxPending is the longest time that an event may be due, in addition to the Timeout of the receiver; 0
	// turns the check off, and the check of the clock. Default: 5 minutes, and 15 seconds while no workers are
	// alive. Another value counts in both cases: an application that calls Inbox.Drain from time to time sets it
	// to more than the time between two calls.
	MaxPending time.Duration

	// MaxSilence returns the longest time without a genuine delivery to this process, at the time at; 0 is no
	// limit. A small shop has quiet Sundays, so the default is nil: the check is off. Of several processes
	// each receives a part of the deliveries.
	//
	//	h.MaxSilence = func(at time.Time) time.Duration {
	//		if at = at.In(asaas.Brasilia()); at.Weekday() == time.Sunday || at.Hour() < 8 {
	//			return 0
	//		}
	//		return 2 * time.Hour
	//	}
	MaxSilence func(at time.Time) time.Duration

	// Failed returns the time since which the provider of a source has counted failed deliveries; zero for none. If
	// no genuine delivery has come since then, one refused delivery fails the check of refused ones. Default: what
	// the parts say that ask the provider, such as a webhook.Watch of asaas.
	Failed func(source string) time.Time

	// Timeout limits each query to Postgres. Default: 2 seconds.
	Timeout time.Duration
}
