# Everything is built from Go modules: Go and make are all that is needed. `make help` lists
# the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
GOLANGCI_LINT := $(GO) tool -modfile=tools/golangci-lint/go.mod golangci-lint
CONTROLLER_GEN := $(GO) tool -modfile=tools/controller-gen/go.mod controller-gen
HELM := $(GO) tool -modfile=tools/helm/go.mod helm
GOVULNCHECK := $(GO) tool -modfile=tools/govulncheck/go.mod govulncheck
# What it writes names the hashes of its own program: these do not depend on this machine's paths.
CYCLONEDX := CGO_ENABLED=0 GOFLAGS=-trimpath $(GO) tool -modfile=tools/cyclonedx/go.mod cyclonedx-gomod
MODULES := . test/controlplane test/controlplane/kueue tools/controller-gen tools/golangci-lint tools/helm tools/helm3 tools/helm-unittest tools/promtool tools/cyclonedx tools/govulncheck tools/plot

# The race detector needs cgo and a C compiler; without them the tests run without it.
RACE := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && set -- $$($(GO) env CC) && command -v "$$1" >/dev/null 2>&1 && echo -race)

# Tests that start a control plane, one package after the other.
CLUSTER_TESTS := ./test/cluster/... ./test/install/... ./test/integration/... ./test/e2e/... ./test/multikueue/... ./test/chaos/... ./test/cli ./test/bench
# They, and the tests of the chart, run programs and read files that Go's test cache does not
# know of. Those of the chart do nothing side by side, so they need no race detector, with
# which evaluating CEL takes minutes.
UNCACHED := -count=1
# How many tests of a package run side by side: they wait more than they work.
PARALLEL ?= 6
FUZZ_TIME ?= 30s
# Which benches run, with commas between them: empty for all. With FULL also what takes long. And
# where their figures go.
BENCH ?=
FULL ?=
BENCH_OUT ?= .bin/bench

CONTAINER_TOOL ?= docker
IMAGE ?= ghcr.io/signalbox-dev/signalbox
# What the chart installs: images with the tag of its appVersion.
APP_VERSION := $(shell sed -n 's/^appVersion: *//p' charts/signalbox/Chart.yaml | tr -d \"\')
VERSION ?= $(APP_VERSION)
# Where a release is built, and for which OS/ARCH: empty for those that are released, and of
# images for that of this machine.
RELEASE ?= .bin/release
PLATFORMS ?=
RELEASED := $(or $(PLATFORMS),linux/amd64 linux/arm64)
# The plugin runs where people work.
PLUGIN_RELEASED := $(or $(PLATFORMS),linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the commands into .bin.
	$(GO) build -o .bin/ ./cmd/...

# release-build builds the command $$command for $$platform into the file $(1). The same
# sources and the same Go give the same bytes: neither a C library nor a path of this machine is in
# them.
release-build = echo "building $$command for $$platform"; \
	CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform\#*/} GOAMD64=v1 GOARM64=v8.0 $(GO) build -trimpath \
		-ldflags '-s -w -X github.com/signalbox-dev/signalbox/internal/command.release=$(VERSION)' -o $(1) ./cmd/$$command

# build-commands builds the commands for the platforms in $(1) into the folder $(2), as
# signalbox-COMMAND-OS-ARCH.
define build-commands
	@for platform in $(1); do for command in webhook reconciler; do \
		$(call release-build,$(2)/signalbox-$$command-$${platform/\//-}); \
	done; done
endef

.PHONY: plugin
plugin: ## Build the kubectl plugin for this machine: .bin/kubectl-signalbox, for a folder of the PATH.
	$(GO) build -trimpath -ldflags '-X github.com/signalbox-dev/signalbox/internal/command.release=$(VERSION)' -o .bin/ ./cmd/kubectl-signalbox

.PHONY: images
images: IMAGE_PLATFORMS = $(or $(PLATFORMS),linux/$(shell $(GO) env GOHOSTARCH))
images: ## Build the images IMAGE-webhook and IMAGE-reconciler, tagged VERSION (of several PLATFORMS: VERSION-ARCH), with CONTAINER_TOOL.
	$(call build-commands,$(IMAGE_PLATFORMS),.bin/images)
	for platform in $(IMAGE_PLATFORMS); do for command in webhook reconciler; do \
		$(CONTAINER_TOOL) build -f Dockerfile --platform $$platform --build-arg TARGETARCH=$${platform#*/} --build-arg COMMAND=$$command \
			--build-arg VERSION=$(VERSION) --build-arg REVISION="$$(git rev-parse HEAD 2>/dev/null)" \
			-t $(IMAGE)-$$command:$(VERSION)$(if $(word 2,$(IMAGE_PLATFORMS)),-$${platform#*/}) .bin/images; \
	done; done

.PHONY: release
release: ## Build commands, kubectl plugin, chart, SBOMs and their checksums into RELEASE (.bin/release), for PLATFORMS.
	@[ "$(VERSION)" = "$(APP_VERSION)" ] || { echo "VERSION is $(VERSION), but the chart's appVersion is $(APP_VERSION)" >&2; exit 1; }
	@rm -f $(RELEASE)/signalbox-* $(RELEASE)/SHA256SUMS
	@$(MAKE) --no-print-directory sbom
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; command=kubectl-signalbox; \
		for platform in $(PLUGIN_RELEASED); do \
			exe=; [ "$${platform%/*}" != windows ] || exe=.exe; plugin=$$folder/$${platform/\//-}/$$command$$exe; \
			$(call release-build,"$$plugin"); \
			$(CYCLONEDX) bin -json -std -noserial -notimestamp -version v$(VERSION) \
				-output $(RELEASE)/signalbox-kubectl-$${platform/\//-}.cdx.json "$$plugin"; \
		done; \
		$(GO) run ./tools/krew -version $(VERSION) -out $(RELEASE) "$$folder"
	@# An archive holds the times of its files, which here are those of the checkout.
	@chart=$$(mktemp -d); trap 'rm -rf "$$chart"' EXIT; \
		cp -R charts/signalbox "$$chart"; \
		TZ=UTC find "$$chart" -exec touch -t 200001010000 {} +; \
		$(HELM) package "$$chart/signalbox" --destination $(RELEASE)
	@cd $(RELEASE) && sha256sum signalbox-* > SHA256SUMS && cat SHA256SUMS

.PHONY: sbom
sbom: ## Build the commands of the cluster and a CycloneDX SBOM of each into RELEASE (.bin/release), for PLATFORMS.
	$(call build-commands,$(RELEASED),$(RELEASE))
	@for platform in $(RELEASED); do for command in webhook reconciler; do \
		binary=$(RELEASE)/signalbox-$$command-$${platform/\//-}; \
		$(CYCLONEDX) bin -json -std -noserial -notimestamp -version v$(VERSION) -output $$binary.cdx.json $$binary; \
	done; done

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what the commands call; needs https://vuln.go.dev, or a copy of it in VULNDB.
	$(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./cmd/...

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
	$(GO) test $(RACE) $$($(GO) list ./... | grep -vE '/test/(bench$$|(chaos|chart|cli|cluster|e2e|install|integration|multikueue|release)(/|$$))')
	$(GO) -C tools/plot test $(RACE) ./...
	@# The first time, building Prometheus's tool for the alerts takes minutes.
	$(GO) test $(UNCACHED) -timeout 30m ./test/chart
	PLATFORMS='$(PLATFORMS)' $(GO) test $(UNCACHED) -timeout 30m ./test/release

.PHONY: test-cluster
test-cluster: ## Run the tests on a real control plane.
	$(GO) test $(RACE) $(UNCACHED) -p 1 -parallel $(PARALLEL) -timeout 40m $(CLUSTER_TESTS)

.PHONY: soak
soak: ## Run in full: parts killed at random for 15 minutes, 1000 suspended TrainJobs for 10, 5000 finished ones.
	$(GO) test $(RACE) $(UNCACHED) -v -timeout 90m ./test/chaos -args \
		-chaos.jobs=200 -chaos.duration=15m -chaos.suspended=1000 -chaos.quiet=10m
	$(GO) test $(RACE) $(UNCACHED) -v -timeout 30m ./test/e2e -run 'TestTTLOfThousandsAtOnce$$' -args -ttl.finished=5000

.PHONY: bench
bench: ## Measure what Signalbox costs, beside stock, by all benches or BENCH (admission,load): tables and plots into BENCH_OUT (.bin/bench).
	$(GO) run ./test/bench -only '$(BENCH)' -out $(BENCH_OUT) $(if $(FULL),-full)
	$(GO) -C tools/plot run . $(abspath $(BENCH_OUT))

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
	$(GO) run ./tools/chart-docs charts/signalbox

.PHONY: lint
lint: ## Run the linters.
	$(GOLANGCI_LINT) run ./...
	cd tools/plot && $(GO) tool -modfile=../golangci-lint/go.mod golangci-lint run ./...

.PHONY: verify
verify: lint ## Check that generated code and modules are as they should be, and lint.
	@for module in $(MODULES); do $(GO) -C $$module mod tidy -diff; done
	@for module in test/trainers/* test/kubernetes/*; do $(GO) -C $$module mod verify; done
	@before=$$(mktemp); trap 'rm -f "$$before"' EXIT; \
		find . \( -name 'zz_generated*' -o -path './charts/*/files/crds/*' -o -path './charts/*/README.md' \) -exec sha256sum {} + > "$$before"; \
		$(MAKE) --no-print-directory generate; \
		sha256sum --check --quiet "$$before" || { echo "generated code was out of date; now it is not: commit it"; exit 1; }

.PHONY: clean
clean: ## Remove what was built.
	rm -rf .bin
