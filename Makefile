# `make demo` and `make test` do everything, from installing what is missing to running; `make help` lists the rest.
#
#   JOBS=N                 compilers and tests run at once (default: all cores)
#   PRESET=release         or debug, sanitize (CMakePresets.json): the build that `build` and `test` use
#   CUDA=1                 compute on NVIDIA GPUs too: a prefix and a build folder (build-cuda) of their own; needs nvcc
#   CUDA_ARCHS=90-real     the GPUs to build for (default: those of this machine)
#   TEST_ARGS='-R Name'    further arguments of ctest
#   DATA=FOLDER            prompts that `bench` compares strategies on: govreport.jsonl, humaneval.jsonl and others
#   MUTATE_ARGS='--list'   further arguments of tests/mutate
#   PREFIX=/usr/local      where `install` puts things; DESTDIR is honoured
#   CMAKE_PREFIX_PATH=DIR  an installed ggml and llama of your own, instead of the prefix that deps/setup builds
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules
.NOTPARALLEL:

JOBS ?= $(shell nproc)
PRESET ?= $(if $(filter-out 0,$(CUDA)),cuda,release)
PREFIX ?= /usr/local
BUILD := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
SOURCES = $(shell find include src tools cli bench tests examples -name '*.h' -o -name '*.cpp' | sort)

export JOBS CUDA CUDA_ARCHS
# Clones in other folders share what ccache holds.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

DEMO_PROMPTS := examples/prompts/long.txt examples/prompts/short.txt

.PHONY: all build knap demo test mutate bench sanitize install uninstall format format-check tidy model clean help setup configure browser

all: build ## build everything (the default)

demo: configure model ## write two texts with and without speculation, side by side
	@echo "knap: building $(BUILD)/knap and $(BUILD)/example_side_by_side"
	@cmake --build $(BUILD) -j $(JOBS) --target knap example_side_by_side
	@[ -e $(BUILD)/.profiled ] || { $(BUILD)/knap profile --seconds 10 && touch $(BUILD)/.profiled; } || true
	@echo "knap: running $(BUILD)/example_side_by_side on $(DEMO_PROMPTS)"
	@$(BUILD)/example_side_by_side "$$(deps/setup model-path)" $(DEMO_PROMPTS)

test: build model browser ## run every test: the default suite and those on the default model
	@echo "knap: testing $(BUILD)"
	@ctest --preset $(PRESET) -j $(JOBS) $(TEST_ARGS)

test-slow: build ## run the lossless suite with thousands of cases (some minutes)
	@ctest --preset slow -j $(JOBS) $(TEST_ARGS)

# Tests open the page of `knap report` in it.
browser:
	@deps/setup packages "chromium chromium"

sanitize: ## run the tests under the address and undefined-behaviour sanitizers
	@$(MAKE) test PRESET=sanitize

mutate: setup ## break the sources in small ways, each of which a test must notice (some minutes)
	@echo "knap: mutating a copy in build/mutate"
	@tests/mutate --jobs $(JOBS) $(MUTATE_ARGS)

# Random weights in the default model's shape, to measure other types with.
BENCH_MODELS := $(BUILD)/bench-F16.gguf $(BUILD)/bench-Q8_0.gguf
# The cells that strategies are compared on: tasks as they are, long documents cut to so many tokens.
BENCH_TASKS := $(addprefix specbench.jsonl:,writing roleplay reasoning math coding extraction stem humanities translation \
    summarization qa math_reasoning rag) gsm8k.jsonl humaneval.jsonl
BENCH_DOCUMENTS := $(foreach n,1024 2048 4096 7680,$(addsuffix @$(n),govreport.jsonl pg19.jsonl booksum.jsonl))

$(BENCH_MODELS): $(BUILD)/bench-%.gguf: | build
	@echo "knap: writing $@"
	@$(BUILD)/knap make-model --shape smollm2-135m --type $* -o $@

BENCH_1B_MODELS := $(BUILD)/bench-1b-Q4_K_M.gguf $(BUILD)/bench-1b-Q8_0.gguf
$(BENCH_1B_MODELS): $(BUILD)/bench-1b-%.gguf: | build
	@echo "knap: writing $@"
	@$(BUILD)/knap make-model --shape llama-3.2-1b --type $* -o $@

bench: build model $(BENCH_MODELS) $(BENCH_1B_MODELS) ## measure knap on the default model, beside libllama
	@echo "knap: speed beside libllama (some minutes)"
	@$(BUILD)/decode_bench "$$(deps/setup model-path)"
	@echo "knap: the same with kernels for AVX2 alone"
	@KNAP_ISA=avx2 $(BUILD)/decode_bench "$$(deps/setup model-path)" --prefill 512 --depths 16,8000
	@echo "knap: the same on models of a billion weights (many minutes)"
	@for model in $(BENCH_1B_MODELS); do $(BUILD)/decode_bench $$model --prefill 512 --depths 16,8000; done
	@echo "knap: bandwidth that a step of plain decoding takes"
	@$(BUILD)/bandwidth_bench "$$(deps/setup model-path)" $(BENCH_1B_MODELS)
	@echo "knap: memory and host time of a request"
	@$(BUILD)/footprint_bench "$$(deps/setup model-path)"
	@echo "knap: cost of rows by weight type, in ggml's kernels and ours"
	@$(BUILD)/matmul_rows_bench
	@echo "knap: cost of attention by path"
	@$(BUILD)/attention_bench
	@echo "knap: cost of a verification by rows"
	@$(BUILD)/verify_bench "$$(deps/setup model-path)" $(BENCH_MODELS)
	@$(BUILD)/verify_bench "$$(deps/setup model-path)" --cache q8_0
	@echo "knap: cost of a draft step by plan"
	@$(BUILD)/draft_bench "$$(deps/setup model-path)"
	@echo "knap: predicted and measured cost of passes"
	@$(BUILD)/cost_bench "$$(deps/setup model-path)"
	@echo "knap: overhead of a round"
	@$(BUILD)/round_bench "$$(deps/setup model-path)"
ifdef DATA
	@echo "knap: likelihood of texts by the type of the cache"
	@$(BUILD)/cache_types_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,govreport.jsonl pg19.jsonl booksum.jsonl)
	@echo "knap: strategies on prompts (some minutes)"
	@$(BUILD)/strategy_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,$(BENCH_TASKS) $(BENCH_DOCUMENTS)) \
	    --strategies knapspec,knapspec-paper
	@echo "knap: predicted and measured throughput of plans"
	@$(BUILD)/predict_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,$(BENCH_DOCUMENTS))
endif

build: configure
	@echo "knap: building $(BUILD)"
	@cmake --build $(BUILD) -j $(JOBS)

knap: configure
	@echo "knap: building $(BUILD)/knap"
	@cmake --build $(BUILD) -j $(JOBS) --target knap

# Configures afresh when the libraries come from another place than last time: CMake remembers where it found them.
configure: setup
	@prefix="$${CMAKE_PREFIX_PATH:-$$(deps/setup prefix-path)}"; \
	if [ "$$(cat $(BUILD)/.configured 2>/dev/null)" != "$$prefix" ]; then \
	    echo "knap: configuring $(BUILD)"; \
	    mkdir -p $(BUILD); \
	    CMAKE_GENERATOR="$${CMAKE_GENERATOR:-$$(command -v ninja >/dev/null && echo Ninja || echo Unix Makefiles)}" \
	        cmake --preset $(PRESET) --fresh > $(BUILD)/configure.log || { cat $(BUILD)/configure.log; exit 1; }; \
	    echo "$$prefix" > $(BUILD)/.configured; \
	fi

setup:
	@deps/setup packages
	@[ -n "$${CMAKE_PREFIX_PATH:-}" ] || deps/setup prefix

model: ## fetch the default model
	@deps/setup packages
	@deps/setup model

# Under sudo nothing is built: root has another cache, and files of root's would stay behind in the build folder.
install: $(if $(SUDO_USER),,build) ## install the program, the library and shell completions into PREFIX
	@[ -x $(BUILD)/knap ] || { echo "knap: nothing to install yet: run make first" >&2; exit 1; }
	@echo "knap: installing into $(DESTDIR)$(PREFIX)"
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" > $(BUILD)/install.log
	@mv $(BUILD)/install_manifest.txt $(BUILD)/installed.txt

uninstall: ## remove what the last install put there
	@[ -f $(BUILD)/installed.txt ] || { echo "knap: $(BUILD) has no record of an install" >&2; exit 1; }
	@echo "knap: removing the files listed in $(BUILD)/installed.txt"
	@sed 's|^|$(DESTDIR)|' $(BUILD)/installed.txt | xargs -d '\n' rm -f
	@rm $(BUILD)/installed.txt

format: ## format the sources
	@deps/setup packages clang-format
	@echo "knap: formatting"
	@clang-format -i $(SOURCES)

format-check: ## say which sources are not formatted
	@deps/setup packages clang-format
	@clang-format --dry-run --Werror $(SOURCES)

# The product only: fixtures, printers and mallocs of tests have names that other people chose.
tidy: setup ## run clang-tidy over the program and the library
	@deps/setup packages clang-tidy
	@$(MAKE) configure PRESET=tidy
	@echo "knap: running clang-tidy"
	@printf '%s\n' $(filter src/%.cpp tools/%.cpp cli/%.cpp examples/%.cpp,$(SOURCES)) | xargs -P $(JOBS) -n 1 clang-tidy -p build-tidy --quiet

clean: ## remove the build folders; the prefix and the model stay in the cache
	@echo "knap: removing the build folders"
	@rm -rf build build-debug build-sanitize build-tidy build-cuda

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22
