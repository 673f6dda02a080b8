// Package spec reads a provider's spec, an OpenAPI 3.1 document with webhooks that are
// the event types, and refuses a document of which no good Go code can be made.
//
// [Spec.Lint] reports all mistakes at once, each with its line and the remedy for
// it; testdata/bad has an example of each rule.
package spec
