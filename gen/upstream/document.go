package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/gen/spec"
)

// official is what counts of Asaas's OpenAPI document. It is read by hand: it
// has mistakes that a library stumbles over, in parts that are not compared.
type official struct {
	schemas map[string]*officialSchema
	events  []string // sorted
}

type officialSchema struct {
	Ref        string                     `json:"$ref"`
	Type       any                        `json:"type"` // a text; a list of texts from OpenAPI 3.1 on
	Enum       []any                      `json:"enum"`
	Properties map[string]*officialSchema `json:"properties"`
	Items      *officialSchema            `json:"items"`
}

func parseOfficial(data []byte) (*official, error) {
	var root struct {
		OpenAPI    string `json:"openapi"`
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
	if o.events = o.eventNames(); len(o.events) == 0 {
		return nil, errors.New("it has no list of event names under WebhookConfig….properties.events: see what became of it, and follow that in gen/upstream/document.go")
	}
	return o, nil
}

// eventNames is every name that a webhook can be configured for. The enum sits
// at the array, where it means nothing, or at its items, or at both.
func (o *official) eventNames() []string {
	var names []string
	for name, schema := range o.schemas {
		if !strings.HasPrefix(name, "WebhookConfig") || schema == nil {
			continue
		}
		if events := o.resolve(schema.Properties["events"]); events != nil {
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
