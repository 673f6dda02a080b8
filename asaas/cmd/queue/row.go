package queue

import (
	"net/url"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// state is that of a webhook's queue, for people.
type state string

const (
	fine           state = "ok"
	penalizedState state = "penalized"
	stopped        state = "stopped"
	disabled       state = "disabled" // and nothing else
	unknown        state = "unknown"
)

func stateOf(w *asaas.Webhook) state {
	switch {
	case w.Interrupted.IsZero() || w.PenalizedRequestsCount.IsZero():
		return unknown
	case w.Interrupted.Or(false):
		return stopped
	case penalized(w) > 0:
		return penalizedState
	case !w.Enabled.Or(true):
		return disabled
	}
	return fine
}

func penalized(w *asaas.Webhook) int { return int(w.PenalizedRequestsCount.Or(0)) }

func (s state) isHeldUp() bool { return s != fine && s != disabled }

// row is a webhook as it is printed.
type row struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	URL       string `json:"url"`
	State     state  `json:"state"`
	Enabled   bool   `json:"enabled"`
	Penalized int    `json:"penalized_requests"`
	// Until the first event may be deleted; null if nothing is held up, or if
	// that is not known.
	SecondsLeft *int64 `json:"seconds_left"`
}

func newRow(w *asaas.Webhook, lastEvent time.Time) row {
	r := row{
		ID: w.ID, Name: w.Name.Or(""), URL: placeOf(w.URL.Or("")), State: stateOf(w), Enabled: w.Enabled.Or(true),
		Penalized: penalized(w),
	}
	if r.State.isHeldUp() && !lastEvent.IsZero() {
		left := asaas.Penalty{Webhook: w}.TimeLeft(lastEvent)
		r.SecondsLeft = new(int64(left / time.Second))
	}
	return r
}

// placeOf returns an address without parts that may be a secret.
func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// words returns the state, with the other causes that keep events away.
func (p *program) words(r row) string {
	if r.State != disabled && !r.Enabled {
		return string(r.State) + ", disabled"
	}
	return string(r.State)
}
