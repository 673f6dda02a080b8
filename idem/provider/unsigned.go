package provider

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// compare refuses, or reports, contradictions of headers and a verified body.
func (d *Dispatcher) compare(r *http.Request, body []byte, said words, eventType string) error {
	for _, c := range d.definition().contradictions(r.Header, d.Scheme, said) {
		if d.StrictHeaders {
			refusal := d.definition().contradicted(c)
			refusal.SignedBody = idem.BodyID(body)
			return refusal
		}
		d.observe(r.Context(), Plain(eventType), c)
	}
	return nil
}

// contradiction is an unsigned header that differs from the signed body.
type contradiction struct {
	header string
	reason idem.Reason
}

var mismatches = map[string]idem.Reason{
	"{time}": ReasonTimestampMismatch, "{id}": ReasonEventIDMismatch, "{type}": ReasonEventTypeMismatch,
}

// contradictions compares the unsigned headers with the signed body. A value that is missing or
// empty in the header or in the body contradicts nothing.
func (p *Definition) contradictions(h http.Header, scheme Scheme, said words) (out []contradiction) {
	at := ""
	if timed, ok := scheme.(HMAC); ok && len(p.Headers) > 0 {
		at, _, _ = timed.read(h)
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

func (p *Definition) contradicted(c contradiction) *idem.Refusal {
	hint := " is not what was signed: something on the way changed it, or the provider does; without StrictHeaders what was signed counts"
	if c.reason == ReasonDuplicateHeader {
		hint = " comes more than once: see what a proxy adds"
	}
	return &idem.Refusal{Source: p.Source, Reason: c.reason, Hint: "signed by the right secret, but " + c.header + hint}
}

// observe has the drift report a contradiction, and logs it the first time.
func (d *Dispatcher) observe(ctx context.Context, eventType string, c contradiction) {
	if eventType != "" && d.definition().places().of(eventType).empty == nil {
		eventType = drift.Name(eventType)
	}
	if !d.Watch.Note(eventType, c.header, drift.HeaderDiffers) {
		return
	}
	d.log(ctx, slog.LevelWarn, "an unsigned header is not what was signed, and what was signed counts; logged once",
		slog.String("header", c.header), slog.String("type", eventType), slog.String("reason", string(c.reason)))
}
