package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// options holds the flags that only Asaas has.
type options struct{ entity string }

// event makes an event with the key that was asked for, before other changes.
func (o *options) event(name string, sparse bool, changes ...asaastest.Change) ([]byte, error) {
	eventType := asaas.EventType(name)
	if !slices.Contains(asaastest.Types(), eventType) {
		return nil, fmt.Errorf("there is no event type %q: asaas-fake types prints them all", name)
	}
	if o.entity != "" {
		path := keyPath(eventType)
		if path == "" {
			return nil, fmt.Errorf("%s is about nothing that has an id: leave -entity out", name)
		}
		changes = slices.Insert(slices.Clone(changes), 0, asaastest.Set(path, o.entity))
	}
	if sparse {
		return asaastest.Sparse(eventType, changes...), nil
	}
	return asaastest.Event(eventType, changes...), nil
}

// keyPath returns the path of the entity's id, "payment.id"; "" if an event has no entity.
func keyPath(eventType asaas.EventType) string {
	body := asaastest.Event(eventType)
	key, err := json.Marshal(asaas.Identify(body).Key)
	var members map[string]json.RawMessage
	if err != nil || json.Unmarshal(body, &members) != nil {
		return ""
	}
	for name, member := range members {
		var object struct{ ID json.RawMessage }
		if json.Unmarshal(member, &object) == nil && bytes.Equal(object.ID, key) {
			return name + ".id"
		}
	}
	return ""
}
