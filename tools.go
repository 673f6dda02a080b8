//go:build ignore

// Package tools names the tools that make this project's code, and how they are run:
//
//	go generate ./...                                # gen makes the providers' packages, with both as libraries
//	go -C gen tool oapi-codegen -version
//	go -C gen tool validate ../spec/asaas.yaml
//
// Their versions are in gen/go.mod. The tag ignore keeps them out of this go.mod: it is part of users' builds, in which
// it would raise their own versions of these modules.
package tools

import (
	_ "github.com/getkin/kin-openapi/cmd/validate"
	_ "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"
)
