package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// fitting is the value of an enum that an event type is named after, in the
// object that it is named after: for PAYMENT_RECEIVED, RECEIVED is the status of
// the payment, and of nothing else in the body. A boolean that an event type is
// named after is true: deleted, for PAYMENT_DELETED.
func fitting(eventType, path string, s *openapi3.Schema) (value any, ok bool) {
	if typeOf(s) == "boolean" {
		named := namedAfter(eventType, path, upperSnake(lastName(path)))
		return true, named
	}
	best := ""
	for _, v := range s.Enum {
		if v, _ := v.(string); len(v) > len(best) && namedAfter(eventType, path, v) {
			best = v
		}
	}
	return best, best != ""
}

// namedAfter tells whether an event type says that the property at a path has a
// value.
func namedAfter(eventType, path, value string) bool {
	if eventType == value { // why something was cancelled, for example
		return true
	}
	about := []string{lastName(path)}
	if isState := lastName(path) == "status" || upperSnake(lastName(path)) == value; isState {
		about = append(about, lastName(parentOf(path)))
	}
	for _, name := range []string{eventType, state(eventType)} {
		owner, ok := strings.CutSuffix(name, "_"+value)
		if ok && slices.ContainsFunc(about, func(name string) bool { return endsAt(owner, name) }) {
			return true
		}
	}
	return false
}

// state ends an event type in the state that it leads to: ACTIVATED, ACTIVE.
func state(eventType string) string {
	if stem, ok := strings.CutSuffix(eventType, "ATED"); ok {
		return stem + "E"
	}
	return eventType
}

// endsAt tells whether the last words of an event type are how the name of a
// property begins, or those before the very last: GENERAL_APPROVAL for general.
func endsAt(owner, name string) bool {
	name = upperSnake(name)
	all := strings.Split(owner, "_")
	for end := max(1, len(all)-1); end <= len(all); end++ {
		for start := range end {
			if strings.HasPrefix(name, strings.Join(all[start:end], "_")) {
				return true
			}
		}
	}
	return false
}

func upperSnake(name string) string {
	return strings.ToUpper(strings.Join(words(name), "_"))
}
