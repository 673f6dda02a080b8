// Package spec reads a provider's spec, an OpenAPI 3.1 document whose webhooks are
// its event types, and refuses one that makes no good Go code.
//
// [Spec.Lint] reports all mistakes at once, each with its line and what to do about
// it; testdata/bad has an example of each rule.
package spec
