// Package drift reports the parts of events that this module's spec of a provider does
// not know: new event types, fields and enum values, types that changed.
//
// The dispatchers keep watch by themselves. Ask them:
//
//	for _, f := range events.Drift() {
//		fmt.Println(f.EventType, f.Path, f.Kind, f.Count)
//	}
//
// or be told of each finding once, when it is new:
//
//	events.Watch.Observe = func(f drift.Finding) {
//		slog.Warn("drift", "event", f.EventType, "path", f.Path, "kind", f.Kind)
//	}
//
// A finding contains no value of the body. A field name that may be a value, because it is
// long, or has more than three digits or an unusual character, is replaced by "*".
//
// # The checks
//
// Comparing a body with its Go type takes longer than decoding it, so bodies are
// sampled: the first 16 of each event type in a process, and then one of
// [Watch].Every, 256 unless set. A body that does not decode is always compared, and an
// unknown event type is always counted. With that, the watch adds about a microsecond to the twenty that it
// takes to verify and decode an event (go test -bench Watch ./asaas).
//
// Redeliveries and replays count again. Findings are forgotten when the process
// ends. To compare stored bodies, save them and run
//
//	go run github.com/paghooks/paghooks/gen@latest drift -spec SPEC FILE…
//
// # Handling of such events
//
//   - An unknown event type goes to OnUnknown, or is kept as unhandled.
//   - Unknown fields and enum values change nothing: the event is handled.
//   - A number sent as a string is still that number, where the Go type is one
//     of this module's number types: the event is handled.
//   - A field of any other type than expected parks the event, with the path in
//     last_error. So does an id that is sent as a number, unless the spec allows
//     it: its leading zeros could be lost.
//   - An event without an essential field is parked: if its entity, or the
//     entity's id, amount or status, is null or missing. An amount of null is not
//     0.00. A spec lists these fields in x-essential; see [Check].
//   - Any other field that is null or missing, although it was always sent, gets its
//     zero value; an amount becomes a value.Optional without a value. The event is
//     handled: a provider that one day nulls a flag must not park every charge.
package drift
