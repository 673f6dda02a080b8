package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// bodies makes the events that were asked for.
func (o *options) bodies() (out [][]byte, err error) {
	for _, eventType := range o.types {
		changes, err := o.changes(eventType)
		if err != nil {
			return nil, err
		}
		for range o.count {
			body, err := o.body(eventType, changes)
			if err != nil {
				return nil, err
			}
			out = append(out, body)
		}
	}
	return out, nil
}

func (o *options) changes(eventType zeltapay.EventType) (out []zeltapaytest.Change, err error) {
	if o.id != "" {
		out = append(out, zeltapaytest.Set("eventId", o.id))
	}
	for _, s := range o.sets {
		c, err := o.change(eventType, out, s)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// change is a --set: of a JSON value, or of a string where the field is one or the value is no JSON. It comes after
// other changes.
func (o *options) change(eventType zeltapay.EventType, before []zeltapaytest.Change, s setting) (zeltapaytest.Change, error) {
	asString, asJSON := zeltapaytest.Set(s.path, s.value), zeltapaytest.Set(s.path, decode(s.value))
	_, mistake := o.body(eventType, append(slices.Clone(before), asJSON))
	if mistake == nil {
		return asJSON, nil
	}
	if _, err := o.body(eventType, append(slices.Clone(before), asString)); err == nil {
		return asString, nil
	}
	return asJSON, mistake
}

// decode is what a JSON text stands for, its numbers as they are spelled; any other text stands for itself.
func decode(text string) (value any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if !json.Valid([]byte(text)) || d.Decode(&value) != nil {
		return text
	}
	return value
}

// body makes an event; what zeltapaytest panics for is an error here.
func (o *options) body(eventType zeltapay.EventType, changes []zeltapaytest.Change) (body []byte, err error) {
	defer func() {
		if said := recover(); said != nil {
			text, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(said), "zeltapaytest: "), "; give a json.RawMessage")
			err = errors.New(text)
		}
	}()
	if o.sparse {
		return o.layout.Sparse(eventType, changes...), nil
	}
	return o.layout.Event(eventType, changes...), nil
}
