package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/gen/spec"
)

// official holds the parts of a provider's OpenAPI document that are compared. It is read by hand:
// Asaas's has mistakes that a library stumbles over, in parts that are not compared.
type official struct {
	schemas map[string]*officialSchema
	events  []string // sorted; nil: the document does not list them
}

type officialSchema struct {
	Ref        string                     `json:"$ref"`
	Type       any                        `json:"type"` // a text; a list of texts from OpenAPI 3.1 on
	Enum       []any                      `json:"enum"`
	Properties map[string]*officialSchema `json:"properties"`
	Items      *officialSchema            `json:"items"`
}

// parseOfficial reads a document that lists the names of events at a place, or as
// its webhooks where place is "".
func parseOfficial(data []byte, place string) (*official, error) {
	var root struct {
		OpenAPI    string         `json:"openapi"`
		Webhooks   map[string]any `json:"webhooks"`
		Components struct {
			Schemas map[string]*officialSchema `json:"schemas"`
		} `json:"components"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		return nil, errors.New("this is HTML, not the OpenAPI document: give the address of the document itself, which ends in JSON")
	}
	if err := json.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("this is not whole JSON, get it again: %w", err)
	}
	if !strings.HasPrefix(root.OpenAPI, "3.") || len(root.Components.Schemas) == 0 {
		return nil, errors.New("this is JSON, but no OpenAPI 3 document with components.schemas: give the document of the whole API")
	}
	o := &official{schemas: root.Components.Schemas}
	if place == "" {
		o.events = slices.Sorted(maps.Keys(root.Webhooks))
		return o, nil
	}
	if o.events = o.eventNames(place); len(o.events) == 0 {
		return nil, fmt.Errorf("it has no list of event names at %s: see what became of it, and correct x-upstream.events", place)
	}
	return o, nil
}

// eventNames is every name that a webhook can be configured for. The enum sits
// at the array, where it means nothing, or at its items, or at both.
func (o *official) eventNames(place string) []string {
	var names []string
	schemas, property, _ := strings.Cut(place, ".")
	for name, schema := range o.schemas {
		if !strings.HasPrefix(name, schemas) || schema == nil {
			continue
		}
		if events := o.resolve(schema.Properties[property]); events != nil {
			names = append(names, enumOf(events)...)
			if items := o.resolve(events.Items); items != nil {
				names = append(names, enumOf(items)...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// resolve follows references; nil if they lead nowhere.
func (o *official) resolve(s *officialSchema) *officialSchema {
	for range 10 { // enough, and no endless circle
		if s == nil || s.Ref == "" {
			return s
		}
		s = o.schemas[spec.SchemaName(s.Ref)]
	}
	return nil
}

func enumOf(s *officialSchema) []string {
	var values []string
	for _, v := range s.Enum {
		if text, ok := v.(string); ok {
			values = append(values, text)
		}
	}
	return values
}

// kind is the schema's type, apart from null.
func (s *officialSchema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if one, ok := one.(string); ok && one != "null" {
				return one
			}
		}
	}
	if s.Properties != nil {
		return "object"
	}
	return "" // says nothing
}
