package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// bodies makes the events that were asked for.
func (o *options) bodies() ([][]byte, error) {
	var out [][]byte
	for _, eventType := range o.types {
		changes, err := o.changes(eventType)
		if err != nil {
			return nil, err
		}
		for range o.count {
			body, err := o.body(eventType, changes...)
			if err != nil {
				return nil, err
			}
			out = append(out, body)
		}
	}
	return out, nil
}

func (o *options) changes(eventType asaas.EventType) ([]asaastest.Change, error) {
	var out []asaastest.Change
	if o.id != "" {
		out = append(out, asaastest.Set("id", o.id))
	}
	if o.key != "" {
		path := keyPath(eventType)
		if path == "" {
			return nil, fmt.Errorf("%s is about nothing that has an id: leave --key out", eventType)
		}
		out = append(out, asaastest.Set(path, o.key))
	}
	for _, s := range o.sets {
		if s.path == "id" || s.path == "event" {
			return nil, fmt.Errorf("--set %s names the event itself: use --id, or another event type", s.path)
		}
		change, err := o.change(eventType, out, s)
		if err != nil {
			return nil, err
		}
		out = append(out, change)
	}
	return out, nil
}

// change is a --set: of a JSON value, or of a string where the field is one or
// the value is no JSON. It comes after other changes.
func (o *options) change(eventType asaas.EventType, before []asaastest.Change, s setting) (asaastest.Change, error) {
	try := func(c asaastest.Change) error {
		_, err := o.body(eventType, append(slices.Clone(before), c)...)
		return err
	}
	asString := asaastest.Set(s.path, s.value)
	value, err := decode(s.value)
	if err != nil {
		return asString, try(asString)
	}
	asJSON := asaastest.Set(s.path, value)
	mistake := try(asJSON)
	if mistake != nil && try(asString) == nil {
		return asString, nil
	}
	return asJSON, mistake
}

// decode reads a JSON value, and keeps its numbers as they are spelled.
func decode(text string) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one value")
	}
	return value, nil
}

// body makes an event; a change that is a mistake is an error here.
func (o *options) body(eventType asaas.EventType, changes ...asaastest.Change) (body []byte, err error) {
	defer func() {
		if said := recover(); said != nil {
			text, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(said), "asaastest: "), "; give a json.RawMessage")
			err = errors.New(text)
		}
	}()
	if o.sparse {
		return asaastest.Sparse(eventType, changes...), nil
	}
	return asaastest.Event(eventType, changes...), nil
}

// keyPath is where the id of what the event is about is, "payment.id"; "" if it
// has none.
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
