package asaastest

import (
	"net/http"
	"strconv"
	"time"
)

// RateLimit is the number of requests that the API takes in a time that begins with the
// first of them.
type RateLimit struct {
	Requests int
	Window   time.Duration
}

// window counts the requests under a limit.
type window struct {
	end  time.Time
	used int
}

// limits counts the requests under each limit, by its name.
type limits map[string]*window

// spend counts a request, and announces the rest in the headers
// RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset (seconds).
func (all limits) spend(h http.Header, name string, limit RateLimit, now time.Time) error {
	w := all[name]
	if w == nil || !now.Before(w.end) {
		w = &window{end: now.Add(limit.Window)}
		all[name] = w
	}
	w.used++
	h.Set("RateLimit-Limit", strconv.Itoa(limit.Requests))
	h.Set("RateLimit-Remaining", strconv.Itoa(max(limit.Requests-w.used, 0)))
	h.Set("RateLimit-Reset", strconv.Itoa(int((w.end.Sub(now)+time.Second-1)/time.Second)))
	if w.used > limit.Requests {
		return errTooMany
	}
	return nil
}

var errTooMany = refused(http.StatusTooManyRequests, "too_many_requests", "O limite de requisições foi excedido. Tente novamente mais tarde.")
