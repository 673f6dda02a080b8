// Package spec reads a provider's spec, an OpenAPI 3.1 document with webhooks that are
// its event types, and refuses one that makes no good Go code.
//
// [Spec.Lint] reports all mistakes at once, each with its line and the remedy for
// it; testdata/bad has an example of each rule.
package spec
