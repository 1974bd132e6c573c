# vesti: targets for those who run it and those who build it. "make help" lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.revision=$(COMMIT)
BIN     := $(CURDIR)/.bin
DATA    ?= data
ARGS    ?=

# Pinned tools, built into .bin. malgo brings a header that Ollama's module lacks.
GOLANGCI := v2.15.0
OLLAMA   := v0.17.4
MALGO    := v0.11.24

# gotd's package tg takes minutes to compile, and far longer with the race
# detector: what need not build it does without.
NOTG     := -tags notelegram
FUZZTIME ?= 5s
ROUNDS   ?=
# Tests that fill a disk, or start one short command after another, of which each
# takes seconds under the race detector and has little to race with.
PLAIN := ^(TestFullDisk|TestDiskFillsUnderServer|TestErrors|TestReviewCommand|TestBackupAndRestore|TestStoreWithoutSourcesAndRules|TestSearchSaysWhatItLeftOut|TestDamagedTexts|TestDamagedTables|TestDamage|TestUpgradeKilled)$$
export VESTI_CASES   ?= ../shared/cases
export VESTI_CORPORA ?= ../shared/corpora

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build vesti and start it with a demo feed (the first build takes some minutes; NOTELEGRAM=1 spares most of them)
	./vesti serve --data $(DATA) --demo $(ARGS)

.PHONY: build
build: ## build ./vesti
	go build $(if $(NOTELEGRAM),$(NOTG)) -ldflags '$(LDFLAGS)' -o vesti ./cmd/vesti

.PHONY: test
test: ## run the tests
	go test $(NOTG) ./...
	go test ./crawl/telegram/...

.PHONY: race
race: ## run the tests under the race detector, without Telegram's
	go test -race -timeout 45m -skip '$(PLAIN)' $(NOTG) ./...

.PHONY: lint
lint: $(BIN)/golangci-lint-$(GOLANGCI) ## lint, with the rules on who may import whom
	$< run ./...

.PHONY: fmt
fmt: $(BIN)/golangci-lint-$(GOLANGCI) ## format
	$< fmt ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (5s)
	@for pkg in $$(go list $(NOTG) ./...); do \
		for f in $$(go test $(NOTG) -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; \
			go test $(NOTG) -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg > .fuzz.log 2>&1 || { cat .fuzz.log; exit 1; }; \
			tail -n 2 .fuzz.log | head -n 1; \
		done; \
	done; rm -f .fuzz.log

.PHONY: bench
bench: ## run the benchmarks
	go test $(NOTG) -run '^$$' -bench . -benchmem ./...

.PHONY: bench-peers
bench-peers: ## compare the ledger with SQLite, River, Asynq and JetStream; JSON=FILE, PEERS=a,b, FLAGS=-quick
	ledger/badgerlog/peers/deps.sh
	cd ledger/badgerlog/peers && go build -mod=mod -o $(BIN)/peers .
	$(BIN)/peers $(if $(JSON),-json $(abspath $(JSON))) $(if $(PEERS),-peers $(PEERS)) $(FLAGS)

.PHONY: crash
crash: ## kill the ledger at random and at chosen points; ROUNDS=500 for the long form
	VESTI_CRASH_ROUNDS=$(ROUNDS) go test -tags 'notelegram failpoints' -count 1 -timeout 120m -v -run 'TestKill|TestLostPower|TestDamagedFiles' ./ledger/badgerlog

.PHONY: test-ollama
test-ollama: $(BIN)/ollama ## run the worker against a real Ollama with a tiny model of random weights (the first build takes minutes)
	VESTI_OLLAMA=$(BIN)/ollama go test $(NOTG) -run '^TestOllama$$' -count 1 -timeout 45m -v ./classify/llm

.PHONY: cases
cases: ## run the public cases and list those that are not met yet
	@go test $(NOTG) -count 1 -run '^TestPublicCases$$' -v ./... | awk ' \
		/^ +--- PASS: TestPublicCases\// {passed++} \
		/^ +--- FAIL: TestPublicCases\// {failed++; print} \
		/^ +--- SKIP: TestPublicCases\// {unmet++; print} \
		/not yet met/ {print} \
		/test data not here/ {print} \
		END {printf "%d passed, %d failed, %d skipped\n", passed, failed, unmet; exit failed > 0}'

.PHONY: quality
quality: ## measure feeds, extraction, classification and search on the corpora; JSON=FILE keeps the figures
	VESTI_QUALITY=1 VESTI_QUALITY_JSON=$(if $(JSON),$(abspath $(JSON))) go test $(NOTG) -count 1 -p 1 -timeout 60m -run '^TestQuality' -v ./crawl/... ./classify/... ./projections/...

.PHONY: deps
deps: $(BIN)/golangci-lint-$(GOLANGCI) ## fetch modules and tools, and a browser for the tests of the pages
	go mod download
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		apt-get update -q && apt-get install -qy --no-install-recommends chromium; fi

.PHONY: tidy-check
tidy-check:
	go mod tidy -diff

.PHONY: fmt-check
fmt-check: $(BIN)/golangci-lint-$(GOLANGCI)
	$< fmt --diff ./...

.PHONY: vet
vet:
	go vet $(NOTG) ./...

.PHONY: ci
ci: deps tidy-check fmt-check vet lint race ## what a change must pass
	go test $(NOTG) -run '$(PLAIN)' ./cmd/vesti ./ledger/badgerlog
	go test ./crawl/telegram/...
	$(MAKE) build
	$(MAKE) fuzz FUZZTIME=3s
	$(MAKE) crash ROUNDS=20
	$(MAKE) cases

$(BIN)/golangci-lint-$(GOLANGCI):
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	mv $(BIN)/golangci-lint $@

# The module lacks two of Ollama's headers, which Debian has as packages.
$(BIN)/ollama:
	@if ! test -f /usr/include/nlohmann/json_fwd.hpp || ! test -d /usr/include/stb; then \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then apt-get update -q && apt-get install -qy nlohmann-json3-dev libstb-dev; \
		else echo "install nlohmann-json3-dev and libstb-dev first"; exit 1; fi; fi
	go mod download github.com/gen2brain/malgo@$(MALGO)
	mkdir -p $(BIN)/shim && ln -sfn $$(go env GOMODCACHE)/github.com/gen2brain/malgo@$(MALGO) $(BIN)/shim/miniaudio
	CGO_CXXFLAGS="-O2 -g0 -I$(BIN)/shim" CGO_CFLAGS="-O2 -g0" GOBIN=$(BIN) go install -ldflags "-s -w -X github.com/ollama/ollama/version.Version=$(OLLAMA:v%=%)" github.com/ollama/ollama@$(OLLAMA)
