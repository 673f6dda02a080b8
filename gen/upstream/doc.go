// Package upstream compares a spec with Asaas's own OpenAPI document of its API.
// That has no webhook bodies, but the names of the events, and the objects that
// events carry.
//
//	go run github.com/paghooks/paghooks/gen upstream 'https://www.asaas.com/openApi/document?version=3&languageCode=en-US'
//
// It prints what is new in the document, gone, or of another type, one line each.
//
// What is delivered without being in the document is marked in the spec, and is
// reported once it is in it: x-undocumented is true in a webhook or a property,
// and in an enum the list of its values that are not there. Beside a $ref it
// marks the property.
package upstream
