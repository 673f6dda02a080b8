package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed templates/events.tmpl
var eventsTemplate string

// family is the events that share a struct.
type family struct {
	Struct string   // PaymentEvent
	Key    string   // the Go expression for the id of what the event is about
	Paths  []string // of that id
	Needs  []essential
	Events []event
}

// event is a webhook of the spec.
type event struct {
	Type    string // PAYMENT_RECEIVED
	Name    string // PaymentReceived
	Struct  string // PaymentEvent
	Summary string // The money of a charge is available.
	Details string // more than the summary, seldom
	URL     string // its documentation
}

// When is the summary as a part of a sentence.
func (e event) When() string { return clause(e.Summary) }

// families lists the events in the order of the spec. The spec has passed the
// linter.
func (s *spec) families() []family {
	var out []family
	index := make(map[string]int)
	for _, name := range inOrder(s.doc.Webhooks, itemOrigin) {
		post := s.doc.Webhooks[name].Post
		e := newEvent(name, post)
		i, ok := index[e.Struct]
		if !ok {
			i = len(out)
			index[e.Struct] = i
			paths, _ := keyPaths(post)
			needs := s.essentials(bodySchema(post).Value)
			out = append(out, family{Struct: e.Struct, Key: s.keyOf(post), Paths: paths, Needs: needs})
		}
		out[i].Events = append(out[i].Events, e)
	}
	return out
}

func newEvent(name string, post *openapi3.Operation) event {
	return event{
		Type:    name,
		Name:    goName(name),
		Struct:  schemaName(bodySchema(post).Ref),
		Summary: post.Summary,
		Details: strings.TrimSpace(post.Description),
		URL:     post.ExternalDocs.URL,
	}
}

// bodySchema is the schema of the JSON that a webhook posts; nil if it has none.
func bodySchema(post *openapi3.Operation) *openapi3.SchemaRef {
	if post.RequestBody == nil || post.RequestBody.Value == nil {
		return nil
	}
	media := post.RequestBody.Value.Content["application/json"]
	if media == nil {
		return nil
	}
	return media.Schema
}

func (s *spec) eventsCode() (string, error) {
	structs, err := s.declarations(isEvent)
	if err != nil {
		return "", err
	}
	t := template.Must(template.New("events").Funcs(template.FuncMap{
		"about":   about,
		"comment": comment,
		"quoted":  quotedList,
	}).Parse(eventsTemplate))
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"EventType": s.schemas()[eventTypeName].Value.Description,
		"Families":  s.families(),
		"Aliases":   s.aliases(),
		"Structs":   structs,
	})
	if err != nil {
		return "", fmt.Errorf("gen: the template of the events is wrong, correct it: %w", err)
	}
	return b.String(), nil
}
