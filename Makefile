# Belay's targets. Each sets up what it needs; `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

version := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
go_build := go build -buildvcs=false -ldflags "-X main.version=$(version)"
go_tool := go tool -modfile=deploy/lint/go.mod

packages ?= ./...
fuzztime ?= 10s
flags ?=

.PHONY: help
help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: ## one task from start to accepted ledger, without an API key
	@deploy/dev/demo

.PHONY: dev
dev: ## server and worker, left running until Ctrl-C
	@deploy/dev/up

.PHONY: build
build: guest ## bin/belay and bin/belay-worker
	@mkdir -p bin
	$(go_build) -o bin/belay ./starter
	$(go_build) -o bin/belay-worker ./worker

# The program that runs inside a sandbox, and the one that starts it in a container; the worker embeds them.
.PHONY: guest
guest:
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w" -o sandbox/process/guest/belay-sandbox ./sandbox/process/guest
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w" -o sandbox/docker/launch/belay-container ./sandbox/docker/launch

.PHONY: setup
setup: # installs bubblewrap and the Temporal CLI where they are missing
	@deploy/dev/setup

.PHONY: test
test: setup build ## all tests, those of Docker sandboxes against a daemon of their own
	@with=; ! go list $(packages) | grep -qx belay/sandbox/docker || with=deploy/dev/docker-test; \
		$$with go test -timeout 14m $(packages)

.PHONY: race
race: setup build ## all tests under the race detector; packages=./agent/... for some
	CGO_ENABLED=1 go test -race -timeout 25m $(packages)

.PHONY: soak
soak: setup build ## sixteen busy tasks for two minutes
	go test -count=1 -timeout 10m ./endtoend -run TestBusy -soak 2m

.PHONY: lint
lint: guest ## gofmt, go vet, staticcheck, workflowcheck, shellcheck and the compose file
	@unformatted=$$(find . -name '*.go' -not -path './.*' -print0 | xargs -0 gofmt -l); \
		[[ -z $$unformatted ]] || { echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	$(go_tool) staticcheck ./...
	$(go_tool) workflowcheck -config deploy/lint/workflowcheck.yaml ./workflows/...
	@deploy/lint/scripts
	@deploy/lint/compose

.PHONY: replay
replay: ## replays the recorded histories against today's workflows
	go test -count=1 -run '^(TestReplay|TestEveryScenarioIsRecorded)$$' ./workflows

.PHONY: record
record: setup build ## records the histories that are missing; never rewrites one
	go test -count=1 -timeout 14m -run '^TestRecord$$' ./workflows -record

.PHONY: bench
bench: setup build ## what Belay costs, beside a bare Temporal workflow; flags='--only growth' for a part
	go run ./bench $(flags)

.PHONY: fuzz
fuzz: ## every fuzz target for a short time; fuzztime=1m for longer
	@grep -rHo --include='*_test.go' --exclude-dir='.?*' '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file func; do \
		go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(fuzztime) "$${file%/*}"; done

.PHONY: clean
clean: ## ends what make dev started and its sandboxes; removes what was built, the server's database and the stores
	@deploy/dev/up --clean
	rm -rf bin sandbox/process/guest/belay-sandbox sandbox/docker/launch/belay-container
