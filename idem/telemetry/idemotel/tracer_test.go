package idemotel_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/telemetry/idemotel"
)

func text(attributes attribute.Set) string {
	return attributes.Encoded(attribute.DefaultEncoder())
}

// attributes are those of a span as text.
func attributes(span tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range span.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

const (
	delivery = "webhook delivery PAYMENT_RECEIVED"
	attempt  = "webhook attempt PAYMENT_RECEIVED"
)

func TestDeliveryIsASpanThatTheHandlersWorkIsPartOf(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.work = func(ctx context.Context, _ pgx.Tx, _ *asaas.PaymentEvent) error {
		_, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("shop").Start(ctx, "work")
		span.End()
		return nil
	}
	before := time.Now()
	s.deliver(s.first(), asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_1")), http.StatusOK)

	span := s.span(delivery)
	if span.Parent.IsValid() || len(span.Links) > 0 || span.SpanKind != trace.SpanKindServer || span.Status.Code != codes.Unset {
		t.Errorf("the delivery's parent, links, kind or status are wrong: %+v", span)
	}
	if span.StartTime.Before(before) || span.EndTime.After(time.Now()) {
		t.Errorf("the delivery is said to be from %s to %s", span.StartTime, span.EndTime)
	}
	want := map[string]string{
		"webhook.source": "asaas", "webhook.type": "PAYMENT_RECEIVED", "webhook.event.id": "evt_1", "webhook.outcome": "done",
	}
	if diff := cmp.Diff(want, attributes(span)); diff != "" {
		t.Error("attributes (-want +got):\n" + diff)
	}
	if work := s.span("work"); work.Parent.SpanID() != span.SpanContext.SpanID() {
		t.Error("the handler's own span is not the delivery's child")
	}
}

func TestAttemptBeginsATraceAndLinksToTheDeliveryThatStoredTheEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	inbox := s.inbox()
	s.deliver(inbox, asaastest.Event("PAYMENT_RECEIVED"), http.StatusOK)
	if err := inbox.Drain(s.Context()); err != nil {
		t.Fatal(err)
	}

	stored, worked := s.span(delivery), s.span(attempt)
	if attributes(stored)["webhook.outcome"] != "pending" || attributes(worked)["webhook.outcome"] != "done" {
		t.Errorf("the outcomes are %s and %s", attributes(stored)["webhook.outcome"], attributes(worked)["webhook.outcome"])
	}
	if worked.Parent.IsValid() || worked.SpanContext.TraceID() == stored.SpanContext.TraceID() || worked.SpanKind != trace.SpanKindConsumer {
		t.Errorf("the attempt does not begin a trace: %+v", worked)
	}
	if len(worked.Links) != 1 || worked.Links[0].SpanContext.SpanID() != stored.SpanContext.SpanID() ||
		worked.Links[0].SpanContext.TraceID() != stored.SpanContext.TraceID() {
		t.Errorf("the attempt's links are %+v, want the delivery %v", worked.Links, stored.SpanContext)
	}
}

func TestReplayLinksToItsCallerAndToTheDelivery(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		return idem.NoRetry(errors.New("no such order"))
	}
	inbox := s.inbox()
	s.deliver(inbox, asaastest.Event("PAYMENT_RECEIVED"), http.StatusOK)
	if err := inbox.Drain(s.Context()); err != nil {
		t.Fatal(err)
	}
	failed, stored := s.span(attempt), s.span(delivery)
	if failed.Status.Code != codes.Error || attributes(failed)["webhook.outcome"] != "parked" {
		t.Errorf("the attempt's status is %+v, its attributes are %v; want an error, parked", failed.Status, attributes(failed))
	}

	s.spans.Reset()
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	ctx, operator := sdktrace.NewTracerProvider().Tracer("page").Start(s.Context(), "replay")
	if replayed, err := inbox.Replay(ctx, idem.Filter{}); err != nil || replayed.Done != 1 {
		t.Fatalf("Replay = %+v, %v", replayed, err)
	}
	replayed := s.span(attempt)
	if replayed.Parent.IsValid() || len(replayed.Links) != 2 ||
		replayed.Links[0].SpanContext.SpanID() != stored.SpanContext.SpanID() ||
		replayed.Links[1].SpanContext.SpanID() != operator.SpanContext().SpanID() {
		t.Errorf("the links of the replay are %+v, want the delivery and the caller", replayed.Links)
	}
}

func TestOnlySpansOfTheApplicationItselfBecomeParents(t *testing.T) {
	t.Parallel()
	const stranger = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00" // asks not to be sampled
	provider := sdktrace.NewTracerProvider()
	for name, c := range map[string]struct {
		middleware func(context.Context, http.Header) context.Context
		child      bool
		links      int
	}{
		"a header that nobody reads is nothing": {
			middleware: func(ctx context.Context, _ http.Header) context.Context { return ctx },
		},
		"a header that a middleware put into the context is linked to": {
			middleware: func(ctx context.Context, h http.Header) context.Context {
				return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
			},
			links: 1,
		},
		"the span of a middleware is the parent": {
			middleware: func(ctx context.Context, _ http.Header) context.Context {
				ctx, _ = provider.Tracer("middleware").Start(ctx, "POST /webhooks/asaas")
				return ctx
			},
			child: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, idemotel.Settings{})
			r := asaastest.Request("/webhooks/asaas", token, asaastest.Event("PAYMENT_RECEIVED"))
			r.Header.Set("traceparent", stranger)
			ctx := c.middleware(s.Context(), r.Header)
			s.send(s.first(), r.WithContext(ctx), http.StatusOK)

			span := s.span(delivery)
			if parent := trace.SpanContextFromContext(ctx); c.child != (span.Parent.IsValid() && span.Parent.SpanID() == parent.SpanID()) {
				t.Errorf("the delivery's parent is %v, want a child %t of %v", span.Parent, c.child, parent)
			}
			if !c.child && span.SpanContext.TraceID().String() == stranger[3:35] {
				t.Error("the delivery is part of a stranger's trace")
			}
			if len(span.Links) != c.links {
				t.Errorf("the delivery has the links %+v, want %d", span.Links, c.links)
			}
		})
	}
}

func TestSpanOfARefusedDeliveryNamesTheReasonAndIsNoError(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.send(s.first(), asaastest.Request("/webhooks/asaas", "wrong", asaastest.Event("PAYMENT_RECEIVED")), http.StatusUnauthorized)
	span := s.span("webhook delivery")
	want := map[string]string{"webhook.source": "asaas", "webhook.outcome": "refused", "webhook.reason": "wrong_token"}
	if diff := cmp.Diff(want, attributes(span)); diff != "" {
		t.Error("attributes (-want +got):\n" + diff)
	}
	if span.Status.Code != codes.Unset {
		t.Errorf("the status is %+v: a stranger must not make errors", span.Status)
	}
}

func TestCarrierIsStoredOnlyOfSampledDeliveries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sampler sdktrace.Sampler
		length  int
	}{
		"sampled":     {sdktrace.AlwaysSample(), 55},
		"not sampled": {sdktrace.NeverSample(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, idemotel.Settings{})
			telemetry, err := idemotel.New(idemotel.Settings{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(c.sampler))})
			if err != nil {
				t.Fatal(err)
			}
			inbox := idem.NewInbox(s.pool, s.dispatcher())
			telemetry.Instrument(inbox)
			s.deliver(inbox, asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_1")), http.StatusOK)
			var carrier string
			err = s.pool.QueryRow(s.Context(), `select coalesce(trace, '') from idem_payloads where event like '%/evt_1'`).Scan(&carrier)
			if err != nil || len(carrier) != c.length {
				t.Errorf("the carrier is %q, %v; want %d bytes", carrier, err, c.length)
			}
		})
	}
}

// A carrier of another version or another tracer must not stop an attempt.
func TestCarrierThatNobodyUnderstandsIsNoLink(t *testing.T) {
	t.Parallel()
	for name, carrier := range map[string]string{
		"of another tracer": "b3: 1-2-3",
		"cut off":           "00-4bf92f3577b34da6a3ce929d0e0e4736",
		"all zero":          "00-00000000000000000000000000000000-0000000000000000-01",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, idemotel.Settings{})
			inbox := s.inbox()
			s.deliver(inbox, asaastest.Event("PAYMENT_RECEIVED"), http.StatusOK)
			if _, err := s.pool.Exec(s.Context(), `update idem_payloads set trace = $1`, carrier); err != nil {
				t.Fatal(err)
			}
			if err := inbox.Drain(s.Context()); err != nil {
				t.Fatal(err)
			}
			if span := s.span(attempt); len(span.Links) != 0 || attributes(span)["webhook.outcome"] != "done" {
				t.Errorf("the attempt has the links %+v and the attributes %v", span.Links, attributes(span))
			}
		})
	}
}

func TestReceiverIsInstrumentedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	inbox := s.inbox()
	defer func() {
		if recover() == nil {
			t.Error("a receiver was instrumented twice without a panic")
		}
	}()
	s.telemetry.Instrument(inbox)
}
