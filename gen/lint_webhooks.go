package main

import (
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const noLink = "there is no link; give the page of the provider's documentation, with https://"

func (l *linter) checkWebhooks() {
	for _, name := range inOrder(l.doc.Webhooks, itemOrigin) {
		item := l.doc.Webhooks[name]
		path := "webhooks." + name
		l.claim(item.Origin, path, "Event"+goName(name))
		for method, operation := range item.Operations() {
			if method != "POST" {
				l.report(operation.Origin, path+"."+strings.ToLower(method), "the providers post their events; write post")
			}
		}
		if item.Post != nil {
			l.checkPost(path+".post", item.Post)
			l.checkEventNames(path+".post", name, item.Post)
		} else if len(item.Operations()) == 0 {
			l.report(item.Origin, path, "there is no operation; add post")
		}
	}
}

func (l *linter) checkUnused() {
	for name, ref := range l.schemas() {
		if _, used := l.keys[schemaPrefix+name]; isEvent(ref.Value) && !used {
			l.report(schemaOrigin(ref), "components.schemas."+name, "no webhook has this event; add the webhook, or remove the schema")
		}
	}
}

func (l *linter) checkPost(path string, post *openapi3.Operation) {
	l.checkSentence(post.Origin, path+".summary", post.Summary)
	if strings.Contains(strings.TrimSpace(post.Summary), "\n") {
		l.report(post.Origin, path+".summary", "it has more than one line; put what is surprising into the description")
	}
	if !hasLink(post.ExternalDocs) {
		l.report(post.Origin, path+".externalDocs.url", noLink)
	}
	if body := l.eventBody(path, post); body != nil {
		l.checkKey(path, post, body)
	}
	l.checkAliases(path, post)
}

// checkAliases checks that a name stands for one event type only.
func (l *linter) checkAliases(path string, post *openapi3.Operation) {
	names, err := aliasesOf(post)
	if err != nil {
		l.report(post.Origin, path, "%v", err)
	}
	for _, name := range names {
		l.claim(post.Origin, path+"."+aliasesName+"."+name, "Event"+goName(name))
	}
}

func hasLink(docs *openapi3.ExternalDocs) bool {
	if docs == nil {
		return false
	}
	u, err := url.Parse(docs.URL)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

// eventBody returns the schema of a webhook's body if it is that of an event.
func (l *linter) eventBody(path string, post *openapi3.Operation) *openapi3.SchemaRef {
	body := bodySchema(post)
	switch {
	case body == nil:
		l.report(post.Origin, path+".requestBody", "there is no schema for application/json; refer to a request body that has one")
	case body.Ref == "":
		return nil // reported as an inline object, or here:
	case !isEvent(body.Value):
		l.report(post.Origin, path+".requestBody", "%s is not the schema of an event; give it allOf: [$ref: %s%s]",
			schemaName(body.Ref), schemaPrefix, envelopeSchema)
	default:
		return body
	}
	return nil
}

// checkKey checks x-entity-key. Webhooks that share a schema share one method of
// its Go struct, and so the key.
func (l *linter) checkKey(path string, post *openapi3.Operation, body *openapi3.SchemaRef) {
	paths, err := keyPaths(post)
	if err != nil {
		l.report(post.Origin, path, "%v", err)
	}
	for _, p := range paths {
		if _, err := l.keyValue(body.Value, p); err != nil {
			l.report(post.Origin, path, "%v", err)
		}
	}
	joined := strings.Join(paths, ", ")
	first, ok := l.keys[body.Ref]
	if !ok {
		l.keys[body.Ref] = joined
	} else if first != joined && err == nil {
		l.report(post.Origin, path, "%s is %q here and %q in another webhook with %s; make them the same",
			entityKeyName, joined, first, schemaName(body.Ref))
	}
}

// checkBodies checks the components that webhooks refer to, where an inline schema
// could hide.
func (l *linter) checkBodies() {
	if l.doc.Components == nil {
		return
	}
	bodies := l.doc.Components.RequestBodies
	for _, name := range inOrder(bodies, bodyOrigin) {
		l.checkContent(bodyOrigin(bodies[name]), "components.requestBodies."+name, bodies[name].Value.Content)
	}
	for name, r := range l.doc.Components.Responses {
		l.checkContent(r.Value.Origin, "components.responses."+name, r.Value.Content)
	}
	for name, item := range l.doc.Webhooks {
		if item.Post != nil && item.Post.RequestBody != nil && item.Post.RequestBody.Ref == "" {
			l.checkContent(item.Post.Origin, "webhooks."+name+".post.requestBody", item.Post.RequestBody.Value.Content)
		}
	}
}

func (l *linter) checkContent(at *openapi3.Origin, path string, content openapi3.Content) {
	for _, media := range slices.Sorted(keysOf(content)) {
		if schema := content[media].Schema; schema != nil && schema.Ref == "" {
			l.report(at, path+".content."+media+".schema", inlineObject)
		}
	}
}
