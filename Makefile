# The checks stand in .ci/run, each of whose steps can be run alone: bash .ci/run -l lists them.

help: ## print this
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

test: ## the tests that prove the promises of docs/promises.md, and the quick ones of each package
	go run ./internal/withpostgres go test ./...

long: ## every test, with the tag long: each message, mode, history, document and platform
	bash .ci/run 'raced tests' 'unraced tests' 'other tests' partitioned

lint: ## vet, format and check the source
	bash .ci/run 'go vet' gofumpt 'go fix' staticcheck modules

generate: ## write the generated files
	go generate ./...

bench: ## compare an event's cost in each mode: BENCHMARKS.md has the others
	go run ./internal/bench

ci: ## everything that must hold before a change goes in
	bash .ci/run

.PHONY: help test long lint generate bench ci
