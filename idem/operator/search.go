package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Found is the result of a search.
type Found struct {
	Events   []idem.StoredEvent // without their payloads
	Complete bool               // whether everything was looked through: neither the time nor the limit was over before
}

// SearchParts returns up to limit events, in any state, with a part in their id or entity:
// letters that follow each other. It reads the events of all sources, ten million in some seconds, and gives up after most:
// the events found by then are returned.
func (o *Operator) SearchParts(ctx context.Context, part string, limit int, most time.Duration) (Found, error) {
	return o.search(ctx, limit, most, func(ctx context.Context, tx store.DB, found func(string) bool) error {
		return store.SearchParts(ctx, tx, o.SourceName(), part, found)
	})
}

// SearchFields returns up to limit events with a body that has a field of one of these names, however
// deep, with exactly this text or number. It looks through bodies that are kept: those of events
// that are not done, and of others with [idem.Common.KeepPayloads]; and gives up after most: the events that
// it has found by then are returned. A text with letters beyond ASCII is found as bodies have it, not escaped.
func (o *Operator) SearchFields(ctx context.Context, names []string, text string, limit int, most time.Duration) (Found, error) {
	encoded, err := json.Marshal(text)
	if err != nil {
		return Found{}, fmt.Errorf("operator: searching events: %w", err)
	}
	part := encoded[1 : len(encoded)-1] // a number has no quotes
	return o.search(ctx, limit, most, func(ctx context.Context, tx store.DB, found func(string) bool) error {
		return store.SearchBodies(ctx, tx, o.SourceName(), part, func(key string, body []byte) bool {
			return !hasField(body, names, text) || found(key)
		})
	})
}

func (o *Operator) search(ctx context.Context, limit int, most time.Duration, search func(context.Context, store.DB, func(string) bool) error) (f Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, most+statementTime)
	defer cancel()
	var keys []string
	f.Complete, err = store.InTime(ctx, o.Pool(), most.Milliseconds(), func(tx store.DB) error {
		return search(ctx, tx, func(key string) bool {
			keys = append(keys, key)
			return len(keys) <= limit
		})
	})
	if err != nil {
		return f, fmt.Errorf("operator: searching events: %w", store.Explain(err))
	}
	if len(keys) > limit {
		keys, f.Complete = keys[:limit], false
	}
	f.Events, err = o.ByKey(ctx, keys)
	return f, err
}

// hasField reports whether a body has a field of one of these names with a text or a number.
func hasField(body []byte, names []string, text string) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	return d.Decode(&v) == nil && has(v, names, text)
}

func has(v any, names []string, text string) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return has(v, names, text) })
	case map[string]any:
		for name, v := range v {
			if slices.Contains(names, name) && isText(v, text) || has(v, names, text) {
				return true
			}
		}
	}
	return false
}

func isText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case json.Number:
		return v.String() == text
	}
	return false
}
