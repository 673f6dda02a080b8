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
// A finding has no value of the body in it. A name that may be one, because it is
// long, or has more than three digits or an unusual character, is "*" in it.
//
// # The checks
//
// To compare a body with the Go type that it decodes into takes longer than to
// decode it, so bodies are sampled: the first 16 of each event type that a
// process gets, and then one of [Watch].Every, 256 unless set. A body that does
// not decode is always looked at, and an event type that is not known is always
// counted. With that, the watch adds about a microsecond to the twenty that it
// takes to verify and decode an event (go test -bench Watch ./asaas).
//
// Redeliveries and replays count again. All of it is forgotten when the process
// ends; to look at bodies that were kept, save them and run
//
//	go run github.com/paghooks/paghooks/gen drift -spec SPEC FILE…
//
// which also proposes the change to the spec.
//
// # Handling of such events
//
//   - An unknown event type goes to OnUnknown, or is kept as unhandled.
//   - Unknown fields and enum values change nothing: the event is handled.
//   - A number sent as a string is still that number, where the Go type is one
//     of this module's number types: the event is handled.
//   - Any other type that changed is not guessed at, and the event is
//     parked, with the path in last_error. That goes for an id that is sent as
//     a number, too, unless the spec says that it may be: zeros in front of it
//     could be lost by then.
//   - An event without its essential fields is parked, too: where its
//     entity, or the entity's id, amount or status, is null or missing. An amount
//     of null is not 0.00. A spec lists these fields in x-essential; see [Check].
//   - Any other field that is null or missing although it was always sent is its
//     zero value, or an optional.Value without one where it is an amount. The
//     event is handled: a provider that one day nulls a flag must not park every
//     charge.
package drift
