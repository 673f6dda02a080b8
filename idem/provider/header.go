package provider

import (
	"net/http"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Why a delivery is refused with StrictHeaders.
const (
	ReasonTimestampMismatch idem.Reason = "timestamp_mismatch"  // a header's time is not the signed one
	ReasonEventIDMismatch   idem.Reason = "event_id_mismatch"   // a header's id is not the body's
	ReasonEventTypeMismatch idem.Reason = "event_type_mismatch" // a header's type is not the body's
)

var mismatches = map[string]idem.Reason{
	"{time}": ReasonTimestampMismatch, "{id}": ReasonEventIDMismatch, "{type}": ReasonEventTypeMismatch,
}

// contradiction is an unsigned header that differs from the signed body.
type contradiction struct {
	header string
	reason idem.Reason
}

// signed returns the signed value that a header repeats; at is the time that was signed.
func (u Header) signed(said words, at string) string {
	switch u.Says {
	case "{time}":
		return at
	case "{id}":
		return said.id
	}
	return said.eventType
}

// contradictions compares the unsigned headers with the signed body. A value that is
// missing or empty, there or here, contradicts nothing.
func (p *Definition) contradictions(h http.Header, scheme Scheme, said words) (out []contradiction) {
	at := ""
	if timed, ok := scheme.(HMAC); ok && len(p.Headers) > 0 {
		at = timed.time(h)
	}
	for _, unsigned := range p.Headers {
		signed := unsigned.signed(said, at)
		switch value, count := sentAs(h, unsigned.Name); {
		case count > 1:
			out = append(out, contradiction{unsigned.Name, ReasonDuplicateHeader})
		case value != "" && signed != "" && value != signed:
			out = append(out, contradiction{unsigned.Name, mismatches[unsigned.Says]})
		}
	}
	return out
}

// Sign sets the headers that the provider would send with a body, for tests.
func (p *Definition) Sign(scheme Scheme, h http.Header, body []byte, secret string, now time.Time) error {
	_, said := p.identify(body, look(nil, body))
	for _, unsigned := range p.Headers {
		if text := unsigned.signed(said, strconv.FormatInt(now.Unix(), 10)); text != "" {
			h.Set(unsigned.Name, text)
		}
	}
	return scheme.Sign(h, body, secret, now)
}

func (p *Definition) contradicted(c contradiction) error {
	if c.reason == ReasonDuplicateHeader {
		return p.refuse(c.reason, c.header+" comes more than once: see what a proxy adds")
	}
	return p.refuse(c.reason, c.header+" is not what was signed: something on the way changed it, or the provider does; "+
		"without StrictHeaders what was signed counts")
}
