# Everything here is a short form of a go command; the README has the two that
# matter.
GO ?= go

.PHONY: build test test-ptx test-exhaustive bench fmt lint kernels kernels-check test-gpu bench-gpu gpu-bundle accept-gpu accept

build: ## the command, as ./compare
	$(GO) build -o compare ./cmd/compare

test: ## all tests; under 3 minutes on 2 cores
	$(GO) test ./...

test-ptx: ## the kernels' whole matrix on the virtual GPU, up to 72 ranks, and all broken kernels; under 6 minutes on 2 cores
	TANDEM_PTX=1 $(GO) test -count=1 -timeout 20m -run '^TestPTX(Matrix|Thresholds|ManyRanks|Mutants)$$' ./cmd/compare

test-exhaustive: ## with every case of the tests that are sampled otherwise; hours are possible
	TANDEM_EXHAUSTIVE=1 $(GO) test -timeout 0 ./...

bench: ## all benchmarks; compare figures of one run only
	$(GO) test -run '^$$' -bench . ./...

fmt:
	gofmt -w api sim hw conformance cmd

lint: ## go vet, gofmt, layering of imports, doc comments
	$(GO) vet ./...
	@test -z "$$(gofmt -l api sim hw conformance cmd | tee /dev/stderr)"
	$(GO) test ./api -count=1 -run 'TestImportsPointDown|TestNothingElseAtTheTop|TestExportedNamesAreDocumented'

kernels: ## the PTX from its sources; needs clang-22
	$(GO) generate ./hw/kernels

kernels-check: ## the PTX is what the sources give, keeps the rules, and assembles; needs clang-22 and ptxas
	$(GO) test -count=1 ./hw/kernels/...
	hw/kernels/assemble.sh $(PTXAS)

test-gpu: ## all tests, with GPUs; a missing GPU is a failure
	HW_REQUIRE_GPU=1 $(GO) test -count=1 -tags gpu ./...

bench-gpu: ## the benchmarks on GPUs; compare figures of one run only
	HW_REQUIRE_GPU=1 $(GO) test -tags gpu -run '^$$' -bench . ./hw/...

gpu-bundle: ## test binaries, compare and a runner for machines without Go: .bin/tandem-gpu-ARCH.tar.gz; ARCH=arm64 needs a cross compiler
	GO="$(GO)" hw/bundle/build.sh $(ARCH)

accept-gpu: ## what hw is held to, on the GPUs here, a line for each point; under 8 minutes
	GO="$(GO)" hw/bundle/build.sh
	.bin/tandem-gpu-$$($(GO) env GOHOSTARCH)/run.sh accept

# With GPUs here their kernels are run, and multicast is emulated unless
# TANDEM_ACCEPT_NATIVE=1 asks for it and no switch of the environment forbids it.
ACCEPT ?= .bin/accept
accept: ## the rows of NVSHMEM PR #131 on our kernels, calls around them, tandem-nvls: a table, and vectors for replay in $(ACCEPT); a minute without a GPU
	$(GO) test -tags gpu -count=1 -v -run '^(TestAccept|TestAcceptGPU)$$' ./cmd/compare/internal/accept -args -accept -bundle=$(abspath $(ACCEPT))
	$(GO) run ./cmd/compare replay $(ACCEPT)/*.jsonl.gz
