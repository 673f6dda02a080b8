package zeltapay

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// contradiction is an unsigned header that does not say what was signed.
type contradiction struct {
	header string
	reason idem.Reason
}

func (c contradiction) refusal() error {
	if c.reason == ReasonDuplicateHeader {
		return repeated(c.header)
	}
	return refuse(c.reason, c.header+" is not what was signed: something on the way changed it, or Zelta Pay does; "+
		"without StrictHeaders what was signed counts")
}

// contradictions compares the unsigned headers with what was signed. What is
// missing or empty, there or here, contradicts nothing.
func contradictions(h http.Header, s signature, signed head) (out []contradiction) {
	for _, c := range []struct {
		contradiction
		signed string
	}{
		{contradiction{headerTimestamp, ReasonTimestampMismatch}, s.timestamp},
		{contradiction{headerEventID, ReasonEventIDMismatch}, signed.EventID},
		{contradiction{headerEventType, ReasonEventTypeMismatch}, string(signed.Type)},
	} {
		sent := sentAs(h, c.header)
		differs := func(value string) bool { return value != "" && value != c.signed }
		switch {
		case len(sent) > 1:
			out = append(out, contradiction{c.header, ReasonDuplicateHeader})
		case c.signed != "" && slices.ContainsFunc(sent, differs):
			out = append(out, c.contradiction)
		}
	}
	return out
}

// observe has the drift report a contradiction, and logs it the first time.
func (d *Dispatcher) observe(ctx context.Context, eventType string, c contradiction) {
	name := eventType
	if isUnknown(name) {
		name = drift.Name(name)
	}
	if !d.Watch.Note(name, c.header, drift.HeaderDiffers) || d.Logger == nil {
		return
	}
	defer func() { _ = recover() }() // a panic of the logger leaves nobody to tell, and the delivery is genuine
	d.Logger.LogAttrs(ctx, slog.LevelWarn, "zeltapay: an unsigned header is not what was signed, and what was signed counts; logged once",
		slog.String("header", c.header), slog.String("type", name), slog.String("reason", string(c.reason)))
}
