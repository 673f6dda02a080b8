//go:build tools

// Package tools pins the version of oapi-codegen that the generator in gen
// uses as a library, so that go.mod and the command line agree on it:
//
//	go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen -version
//
// The build tag keeps it out of every build; only go mod tidy reads it.
package tools

import _ "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"
