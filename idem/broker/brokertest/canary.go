package brokertest

import (
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/canary"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/relay"
)

// canaryGoesThrough has a canary delivered to the relay while a consumer runs, while none does, and
// while one has another secret.
func canaryGoesThrough(s *shop) {
	inbox := s.newInbox()
	body := note{ID: "canary-of-a-shop", Type: idem.CanaryType}.body()
	c := canary.New("notes", s.url, body, func(h http.Header, _ []byte) { h.Set("token", token) })
	c.Logger, c.Arrived = nil, inbox.LastCanary
	h := health.New(c)
	h.Logger = nil
	healthy := func() (bool, string) {
		checks := c.Examine(s.Context(), h.Limits)
		return checks[0].Healthy, checks[0].Says
	}

	c.Timeout = longestWait
	stop := s.consume(relay.To(inbox, secret))
	for range 2 { // the second is no duplicate of the first
		if err := c.Send(s.Context()); err != nil {
			s.Error(err)
		}
		if well, says := healthy(); !well || says != "it was handled" {
			s.Errorf("while a consumer runs, health says %q, %t", says, well)
		}
	}
	s.wantStored("done 1")
	if n := s.effects(); n != 0 {
		s.Errorf("%d handlers ran", n)
	}
	stop()

	// On a busy machine a second may be over before the relay has answered: then it is sent again.
	fail := func(says string) error {
		for {
			err := c.Send(s.Context())
			if err == nil || strings.Contains(err.Error(), says) || s.Context().Err() != nil ||
				!strings.Contains(err.Error(), "there was no answer within") && !strings.Contains(err.Error(), "could not be asked") {
				return err
			}
		}
	}
	c.Timeout = time.Second
	for range 2 {
		const says = "no consumer has handled it within 1s"
		if err := fail(says); err == nil || !strings.Contains(err.Error(), says) {
			s.Errorf("while no consumer runs: %v", err)
		}
	}
	if well, says := healthy(); well || !strings.Contains(says, "see whether consumers run") {
		s.Errorf("while no consumer runs, health says %q, %t", says, well)
	}

	stop = s.consume(relay.To(inbox, "another secret, of thirty-two characters"))
	if err := fail("have the relay's secret"); err == nil || !strings.Contains(err.Error(), "have the relay's secret") {
		s.Errorf("while the consumer has another secret: %v", err)
	}
	stop()

	c.Timeout = longestWait
	s.consume(relay.To(inbox, secret))
	if err := c.Send(s.Context()); err != nil {
		s.Error(err)
	}
	if well, says := healthy(); !well {
		s.Errorf("when a consumer runs again, health says %q", says)
	}
}
