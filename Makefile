# Everything is built from Go modules: Go and make are all that is needed. `make help` lists
# the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
GOLANGCI_LINT := $(GO) tool -modfile=tools/golangci-lint/go.mod golangci-lint
CONTROLLER_GEN := $(GO) tool -modfile=tools/controller-gen/go.mod controller-gen
MODULES := . test/controlplane test/controlplane/kueue tools/controller-gen tools/golangci-lint tools/helm

# The race detector needs cgo and a C compiler; without them the tests run without it.
RACE := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && set -- $$($(GO) env CC) && command -v "$$1" >/dev/null 2>&1 && echo -race)

# Tests that start a control plane, one package after the other.
CLUSTER_TESTS := ./test/cluster/... ./test/integration/... ./test/e2e/... ./test/multikueue/... ./test/chaos/...
# They, and the tests of the chart, run programs and read files that Go's test cache does not
# know of. Those of the chart do nothing side by side, so they need no race detector, with
# which evaluating CEL takes minutes.
UNCACHED := -count=1
# How many tests of a package run side by side: they wait more than they work.
PARALLEL ?= 6
FUZZ_TIME ?= 30s

CONTAINER_TOOL ?= docker
IMAGE ?= ghcr.io/signalbox-dev/signalbox
VERSION ?= 0.1.0

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the commands into .bin.
	$(GO) build -o .bin/ ./cmd/...

.PHONY: images
images: ## Build the images IMAGE-webhook and IMAGE-reconciler, tagged VERSION, with CONTAINER_TOOL.
	CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -ldflags '-s -w -X github.com/signalbox-dev/signalbox/internal/command.release=$(VERSION)' -o .bin/images/ ./cmd/webhook ./cmd/reconciler
	for command in webhook reconciler; do \
		$(CONTAINER_TOOL) build -f Dockerfile --build-arg COMMAND=$$command -t $(IMAGE)-$$command:$(VERSION) .bin/images; \
	done

.PHONY: demo
demo: ## Play the life of a TrainJob with a deadline on a real control plane.
	$(GO) run ./test/demo

.PHONY: up
up: ## Start a cluster as the demo's and leave it running until Ctrl-C; with KUEUE=1 with Kueue.
	$(GO) run ./test/cluster/cmd/up $(if $(KUEUE),-kueue)

.PHONY: control-plane
control-plane: ## Build the control plane of the tests, where missing (the first time takes long).
	$(GO) run ./test/cluster/cmd/control-plane

.PHONY: test
test: control-plane test-unit test-cluster ## Run all tests.

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane, and the fuzz targets on their seeds.
	@$(if $(RACE),,echo "no C compiler or no cgo: the tests run without the race detector")
	$(GO) test $(RACE) $$($(GO) list ./... | grep -vE '/test/(chaos|chart|cluster|e2e|integration|multikueue)(/|$$)')
	$(GO) test $(UNCACHED) ./test/chart

.PHONY: test-cluster
test-cluster: ## Run the tests on a real control plane.
	$(GO) test $(RACE) $(UNCACHED) -p 1 -parallel $(PARALLEL) -timeout 40m $(CLUSTER_TESTS)

.PHONY: soak
soak: ## Run in full: parts killed at random for 15 minutes, 1000 suspended TrainJobs for 10, 5000 finished ones.
	$(GO) test $(RACE) $(UNCACHED) -v -timeout 90m ./test/chaos -args \
		-chaos.jobs=200 -chaos.duration=15m -chaos.suspended=1000 -chaos.quiet=10m
	$(GO) test $(RACE) $(UNCACHED) -v -timeout 30m ./test/e2e -run 'TestTTLOfThousandsAtOnce$$' -args -ttl.finished=5000

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZ_TIME (30s).
	@for target in $$(grep -rhoE '^func Fuzz\w+' --include='*_test.go' . | awk '{print $$2}'); do \
		package=$$(dirname "$$(grep -rlE "^func $$target\b" --include='*_test.go' .)"); \
		$(GO) test -vet=off -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 20x "$$package"; \
	done

.PHONY: generate
generate: ## Write the generated code anew.
	$(CONTROLLER_GEN) object paths=./internal/trainer/... paths=./api/...
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=charts/signalbox/files/crds

.PHONY: lint
lint: ## Run the linters.
	$(GOLANGCI_LINT) run ./...

.PHONY: verify
verify: lint ## Check that generated code and modules are as they should be, and lint.
	@for module in $(MODULES); do $(GO) -C $$module mod tidy -diff; done
	@for module in test/trainers/*; do $(GO) -C $$module mod verify; done
	@before=$$(mktemp); trap 'rm -f "$$before"' EXIT; \
		find . \( -name 'zz_generated*' -o -path './charts/*/files/crds/*' \) -exec sha256sum {} + > "$$before"; \
		$(MAKE) --no-print-directory generate; \
		sha256sum --check --quiet "$$before" || { echo "generated code was out of date; now it is not: commit it"; exit 1; }

.PHONY: clean
clean: ## Remove what was built.
	rm -rf .bin
