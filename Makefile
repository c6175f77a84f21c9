# childlog: `make demo` shows the main job, `make test` runs the tests.
# Both need Go and make, nothing else.

GO ?= go

.PHONY: demo build test race lint fmt bench bench-quick microbench torture

build: ## the command, in bin/; without cgo, which would load the C library at each start
	CGO_ENABLED=0 $(GO) build -o bin/childlog ./cmd/childlog

demo: build ## a delegation, a restart, a cold resume, explained
	@bin/childlog demo

test: ## every test, in a short form where a long one exists
	$(GO) test -short ./...

race: ## the same under the race detector (needs a C compiler), but for the command's scripts: they start processes
	$(GO) test -short -race -timeout 25m -skip '^TestScripts' ./...

lint: ## formatting and vet, for macOS too: what is only on Linux belongs into files that say so
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt wants: $$out"; exit 1; fi
	$(GO) vet ./...
	cd eventlog/bench && $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...

fmt:
	gofmt -w .

bench: ## childlog beside its peers, some minutes; ARGS='-run append -dir /mnt/disk' narrows and places it
	cd eventlog/bench && $(GO) run . $(ARGS)

bench-quick: ## the same with small sizes, in about a minute
	cd eventlog/bench && $(GO) run . -quick $(ARGS)

microbench: ## Go benchmarks: appends, policy by log length, a decision
	$(GO) test -run '^$$' -bench . -benchtime 2s ./eventlog ./replay ./policy

torture: ## the long forms: every test without -short, each fuzzer for a while, and what the faults found
	@mkdir -p bin && rm -f bin/torture-counts
	CHILDLOG_TORTURE_COUNTS=$(CURDIR)/bin/torture-counts $(GO) test -count=1 -timeout 90m ./... || { cat bin/torture-counts 2>/dev/null; exit 1; }
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "fuzz $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s -fuzzminimizetime 20x $$p || exit 1; done; done
	@cat bin/torture-counts
