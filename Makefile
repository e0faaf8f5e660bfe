# `make demo` and `make test` do everything, including installing what is missing; `make help` lists all targets.
#
#   JOBS=N                 number of parallel compilers and tests (default: all cores)
#   PRESET=release         or debug, sanitize (CMakePresets.json): the preset for `build` and `test`
#   CUDA=1                 also build for NVIDIA GPUs, with a separate prefix and build folder (build-cuda); needs nvcc
#   CUDA_ARCHS=90-real     GPU architectures to build for (default: those of this machine)
#   TEST_ARGS='-R Name'    extra arguments for ctest
#   DATA=FOLDER            prompts for `bench`, `results` and `bench-serve`: govreport.jsonl, humaneval.jsonl and others
#   BENCH_ARGS='--quick'   extra arguments for bench/serve/run.py
#   BENCH_QUICK_ARGS=--store  extra arguments for bench/quick/run.py: keep the ratios of this machine
#   RESULTS_ARGS='--list'  extra arguments for docs/measure.py: --cells NAME,... --part 2/3 --out FOLDER
#   MUTATE_ARGS='--list'   extra arguments for tests/mutate
#   FUZZ_SECONDS=60        how long `fuzz` runs each target; `fuzz-long` an hour
#   FUZZ_ARGS='--only gguf_model'  extra arguments for tests/fuzz/run
#   COMPAT_ARGS='trixie'   the systems that `compat` tries
#   TOKENS=1000000         how many tokens `exactness` compares
#   LOAD_SECONDS=7200      how long `load` lasts
#   LOAD_ARGS='-t 4'       extra arguments for tests/serve/load/run
#   PREFIX=/usr/local      where `install` installs to; DESTDIR is honoured
#   CMAKE_PREFIX_PATH=DIR  an installed ggml and llama to use instead of the prefix that deps/setup builds
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules
.NOTPARALLEL:

JOBS ?= $(shell nproc)
PRESET ?= $(if $(filter-out 0,$(CUDA)),cuda,release)
PREFIX ?= /usr/local
BUILD := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
SOURCES = $(shell find include src tools serve hub cli bench tests examples -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | sort)

export JOBS CUDA CUDA_ARCHS
# Lets clones in different folders share ccache entries.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

# One where copies pay, one of 6K tokens where a plan pays too, and one where nothing does.
DEMO_DOCUMENT := $(BUILD)/demo/document.txt
DEMO_PROMPTS := examples/prompts/long.txt $(DEMO_DOCUMENT) examples/prompts/short.txt

.PHONY: all build knap demo test test-arm check-cuda test-slow exactness mutate fuzz fuzz-long load bench bench-quick bench-serve results sanitize tsan install uninstall licences package compat reproducible format format-check tidy model clean help setup configure browser tables pictures test-env balancer

all: build ## build everything (the default)

$(DEMO_DOCUMENT): cli/bench/texts/document.txt examples/prompts/document.txt
	@mkdir -p $(@D)
	@{ awk '/^## Before/ { on = 1 } on { text = text $$0 "\n" } END { printf "%s", substr(text, 1, 22000) }' $< && \
	    cat examples/prompts/document.txt; } > $@.part && mv $@.part $@

demo: configure model $(DEMO_DOCUMENT) ## generate three texts with and without drafts, side by side
	@echo "knap: building $(BUILD)/knap and $(BUILD)/example_side_by_side"
	@cmake --build $(BUILD) -j $(JOBS) --target knap example_side_by_side
	@[ -e $(BUILD)/.profiled ] || { $(BUILD)/knap profile --seconds 10 && touch $(BUILD)/.profiled; } || true
	@echo "knap: running $(BUILD)/example_side_by_side on $(DEMO_PROMPTS)"
	@$(BUILD)/example_side_by_side "$$(deps/setup model-path)" $(DEMO_PROMPTS)

# With the kernels for ARM, unless this machine is one: there the other tests run them. The kernels for NVIDIA GPUs are only
# compiled; `make test CUDA=1` runs them.
test: build model browser test-env $(if $(filter release,$(PRESET)),$(if $(filter x86_64,$(shell uname -m)),test-arm) check-cuda) ## run all tests, including those that need the default model
	@echo "knap: testing $(BUILD)"
	@ctest --preset $(PRESET) -j $(JOBS) $(TEST_ARGS)

# Also on an emulated CPU without dot products, where the plain reference has to be chosen.
test-arm: ## run the tests of the CPU kernels for 64-bit ARM in an emulator
	@deps/setup packages
	@deps/setup packages "g++-aarch64-linux-gnu aarch64-linux-gnu-g++" "qemu-user qemu-aarch64" googletest
	@echo "knap: building build-arm/kernel_tests"
	@mkdir -p build-arm
	@sources="$$(deps/setup sources)"; { cmake -S tests/arm -B build-arm -G Ninja -DCMAKE_BUILD_TYPE=Release \
	    -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/aarch64.cmake -DKNAP_LLAMA_SOURCES="$$sources" && \
	    cmake --build build-arm -j $(JOBS) --target kernel_tests; } > build-arm/build.log 2>&1 || { cat build-arm/build.log; exit 1; }
	@echo "knap: testing build-arm"
	@qemu-aarch64 build-arm/kernel_tests --gtest_brief=1 --gtest_filter='-*/plain*'
	@qemu-aarch64 -cpu cortex-a53 build-arm/kernel_tests --gtest_brief=1 --gtest_filter='RowQuantiser.*:InstructionSets.*'

# For one architecture, which needs no GPU.
check-cuda: setup ## compile the CUDA kernels, if nvcc is on the machine
	@command -v nvcc > /dev/null || { echo "knap: nvcc is not on this machine: the CUDA kernels are not compiled"; exit 0; }; \
	echo "knap: compiling the CUDA kernels in build-check-cuda"; \
	mkdir -p build-check-cuda; \
	{ cmake -S . -B build-check-cuda -G Ninja -DCMAKE_BUILD_TYPE=Release -DKNAP_CUDA_KERNELS=ON -DKNAP_TESTS=OFF -DKNAP_BENCHMARKS=OFF \
	    -DCMAKE_CUDA_ARCHITECTURES=90-real && \
	    cmake --build build-check-cuda -j $(JOBS) --target cuda_kernels; } > build-check-cuda/build.log 2>&1 || \
	    { cat build-check-cuda/build.log; exit 1; }

test-slow: build model test-env balancer ## run the random suites (lossless, several sessions, HTTP) with many more cases (takes minutes)
	@ctest --preset slow -j $(JOBS) $(TEST_ARGS)

# Tests open the page of `knap report` in a browser.
browser:
	@deps/setup packages "chromium chromium"

# A test kills one of three servers behind it.
balancer:
	@deps/setup packages "haproxy haproxy"

# Tests of the server use real clients.
test-env:
	@deps/setup test-env > /dev/null

sanitize: ## run the tests under the address and undefined-behaviour sanitizers
	@$(MAKE) test PRESET=sanitize

tsan: ## run the tests of several sessions and of the server under the thread sanitizer
	@$(MAKE) configure PRESET=tsan
	@echo "knap: building build-tsan/thread_tests"
	@cmake --build --preset tsan -j $(JOBS)
	@ctest --preset tsan -j $(JOBS) $(TEST_ARGS)

# Models with random weights: several architectures, some with windows or experts, and weight types. Then the trained ones,
# and the default model with fewer tokens, because it is slower. The record is kept: a further run goes on where it ends.
TOKENS ?= 1000000
EXACTNESS := $(BUILD)/exactness
EXACTNESS_RANDOM := tiny-llama.Q8_0 tiny-qwen3.Q4_1 tiny-gemma2.F16 tiny-gemma3.Q8_0 tiny-olmo2.Q5_0 tiny-gpt-oss.MXFP4 small-qwen3moe.Q4_K_M
EXACTNESS_MODELS := $(EXACTNESS_RANDOM:%=$(EXACTNESS)/%.gguf) models/bytes-plain.gguf models/bytes-layerskip.gguf
$(EXACTNESS)/%.gguf: | knap
	@mkdir -p $(@D)
	@$(BUILD)/knap make-model --shape $(basename $*) --type $(patsubst .%,%,$(suffix $*)) -o $@

exactness: knap model $(EXACTNESS_MODELS) ## compare 1,000,000 tokens of all strategies with plain decoding (hours; goes on where it stopped)
	@check() { \
	    echo "knap: comparing $$2 tokens on $$1$${KNAP_ISA:+ with $$KNAP_ISA}"; \
	    model=$$1 tokens=$$2; shift 2; \
	    $(BUILD)/knap check -m $$model --tokens $$tokens --record $(EXACTNESS)/record.jsonl "$$@" > $(EXACTNESS)/table.txt || \
	        { code=$$?; cat $(EXACTNESS)/table.txt; exit $$code; }; \
	}; \
	n=$$(( $(TOKENS) / (2 * $(words $(EXACTNESS_MODELS)) + 1) )); \
	for isa in "" avx2; do \
	    export KNAP_ISA=$$isa; \
	    for model in $(EXACTNESS_MODELS); do check $$model $$n; done; \
	    check "$$(deps/setup model-path)" $$(( n / 2 )) --adapter models/kangaroo-smollm2-135m.gguf; \
	done
	@cat $(EXACTNESS)/table.txt

mutate: setup ## run mutation tests: break the sources and check that tests fail (takes minutes)
	@echo "knap: mutating a copy in build/mutate"
	@tests/mutate --jobs $(JOBS) $(MUTATE_ARGS)

# With Clang's libFuzzer. Seeds, inputs that are kept and those that found a fault are in build-fuzz/fuzz.
FUZZ_SECONDS ?= 60
fuzz: ## fuzz what reads files, requests and texts from outside, a minute for each target
	@deps/setup packages
	@deps/setup packages "clang clang++" libclang-rt-14-dev
	@$(MAKE) configure PRESET=fuzz
	@echo "knap: building build-fuzz/fuzz_*"
	@cmake --build --preset fuzz -j $(JOBS)
	@tests/fuzz/run --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

fuzz-long: ## the same for an hour each
	@$(MAKE) fuzz FUZZ_SECONDS=3600

# The result is in $(BUILD)/load.json and .md. Ctrl-C ends it early; what it found until then counts.
LOAD_SECONDS ?= 7200
load: knap model ## load `knap serve` with clients that come, go, stall and lie, for two hours
	@tests/serve/load/run --knap $(BUILD)/knap --seconds $(LOAD_SECONDS) -o $(BUILD)/load.json -o $(BUILD)/load.md $(LOAD_ARGS)

# Models with random weights in the default model's shape, to measure other types.
BENCH_MODELS := $(BUILD)/bench-F16.gguf $(BUILD)/bench-Q8_0.gguf
# The cells to compare strategies on: tasks as they are, and long documents cut to @N tokens.
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

bench: build model $(BENCH_MODELS) $(BENCH_1B_MODELS) ## benchmark the default model, and compare it with libllama
	@echo "knap: speed compared with libllama (takes minutes)"
	@$(BUILD)/decode_bench "$$(deps/setup model-path)"
	@echo "knap: the same with AVX2 kernels only"
	@KNAP_ISA=avx2 $(BUILD)/decode_bench "$$(deps/setup model-path)" --prefill 512 --depths 16,8000
	@echo "knap: the same on models with a billion parameters (takes many minutes)"
	@for model in $(BENCH_1B_MODELS); do $(BUILD)/decode_bench $$model --prefill 512 --depths 16,8000; done
	@echo "knap: memory bandwidth used by a step of plain decoding"
	@$(BUILD)/bandwidth_bench "$$(deps/setup model-path)" $(BENCH_1B_MODELS)
	@echo "knap: memory and host time of a request"
	@$(BUILD)/footprint_bench "$$(deps/setup model-path)"
	@echo "knap: cost of rows by weight type, with ggml's kernels and ours"
	@$(BUILD)/matmul_rows_bench
	@echo "knap: speed of our kernels for products, by instruction set"
	@$(BUILD)/kernel_bench
	@echo "knap: cost of a phase beside its work, by number of threads"
	@$(BUILD)/phase_bench
	@echo "knap: cost of attention by path"
	@$(BUILD)/attention_bench
	@echo "knap: cost of a verification by number of rows"
	@$(BUILD)/verify_bench "$$(deps/setup model-path)" $(BENCH_MODELS)
	@$(BUILD)/verify_bench "$$(deps/setup model-path)" --cache q8_0
	@echo "knap: cost of a draft step by plan"
	@$(BUILD)/draft_bench "$$(deps/setup model-path)"
	@echo "knap: predicted and measured cost of passes"
	@$(BUILD)/cost_bench "$$(deps/setup model-path)"
	@echo "knap: overhead of a round"
	@$(BUILD)/round_bench "$$(deps/setup model-path)"
	@echo "knap: passes that copies save, and what the index of copies costs"
	@$(BUILD)/copies_bench "$$(deps/setup model-path)"
	@echo "knap: several conversations at once, compared with libllama (takes many minutes)"
	@$(BUILD)/batch_bench
ifdef DATA
	@echo "knap: likelihood of texts by cache type"
	@$(BUILD)/cache_types_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,govreport.jsonl pg19.jsonl booksum.jsonl)
	@echo "knap: strategies on prompts (takes minutes)"
	@$(BUILD)/strategy_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,$(BENCH_TASKS) $(BENCH_DOCUMENTS)) \
	    --strategies knapspec,knapspec-paper
	@echo "knap: passes that copies save on prompts, greedily and sampled"
	@$(BUILD)/copies_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,$(BENCH_TASKS) $(BENCH_DOCUMENTS))
	@$(BUILD)/copies_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,$(BENCH_TASKS) $(BENCH_DOCUMENTS)) --temperature 0.7
	@echo "knap: predicted and measured throughput of plans"
	@$(BUILD)/predict_bench "$$(deps/setup model-path)" $(addprefix $(DATA)/,$(BENCH_DOCUMENTS))
endif

# Ten minutes on two cores. Only what it runs is built.
bench-quick: configure model ## compare the speed of this machine with stored ratios: did anything become slower?
	@echo "knap: building $(BUILD)/knap, $(BUILD)/decode_bench and $(BUILD)/verify_bench"
	@cmake --build $(BUILD) -j $(JOBS) --target knap decode_bench verify_bench
	@bench/quick/run.py --build $(BUILD) --model "$$(deps/setup model-path)" $(BENCH_QUICK_ARGS)

# A profile first: in the measurements themselves the server does not use its idle time to make one.
bench-serve: knap model ## benchmark `knap serve`, beside llama.cpp's server (takes many minutes)
	@peer="$$(deps/setup peer-server)"; \
	[ -e $(BUILD)/.profiled ] || { $(BUILD)/knap profile --seconds 10 && touch $(BUILD)/.profiled; }; \
	bench/serve/run.py --knap $(BUILD)/knap --model "$$(deps/setup model-path)" --peer "$$peer" \
	    $(if $(DATA),--data $(DATA)) -o $(BUILD)/bench-serve.json -o $(BUILD)/bench-serve.md $(BENCH_ARGS)

# Nothing else should run on the machine.
results: $(if $(filter --list,$(RESULTS_ARGS)),,build model) ## measure what the documentation's tables show (hours; goes on where it stopped)
	@$(if $(filter --list,$(RESULTS_ARGS)),,[ -e $(BUILD)/.profiled ] || { $(BUILD)/knap profile --seconds 10 && touch $(BUILD)/.profiled; }; ) \
	docs/measure.py --model "$$(deps/setup model-path)" $(if $(DATA),--data $(DATA)) $(if $(filter cuda,$(PRESET)),--device gpu) $(RESULTS_ARGS)

tables: ## rewrite the tables of the documentation from docs/results/data
	@docs/tables.py

pictures: configure model browser ## redraw the pictures of the documentation (some minutes)
	@echo "knap: building $(BUILD)/knap and $(BUILD)/example_side_by_side"
	@cmake --build $(BUILD) -j $(JOBS) --target knap example_side_by_side
	@echo "knap: drawing into docs/pictures (about 5 minutes on 2 cores)"
	@docs/pictures.py --build $(BUILD)

build: configure
	@echo "knap: building $(BUILD)"
	@cmake --build $(BUILD) -j $(JOBS)

knap: configure
	@echo "knap: building $(BUILD)/knap"
	@cmake --build $(BUILD) -j $(JOBS) --target knap licences

# Configures from scratch when the location of the libraries has changed, because CMake caches where it found them.
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

# Does not build under sudo: root has a different cache, and would leave files that it owns in the build folder.
install: $(if $(SUDO_USER),,build) ## install the program, the library and shell completions into PREFIX
	@[ -x $(BUILD)/knap ] || { echo "knap: nothing to install: run make first" >&2; exit 1; }
	@echo "knap: installing into $(DESTDIR)$(PREFIX)"
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" > $(BUILD)/install.log
	@mv $(BUILD)/install_manifest.txt $(BUILD)/installed.txt

licences: knap ## list what of others is in the program or needed to build and test it, with its licences
	@deps/licences --strict --program $(BUILD)/knap -o $(BUILD)/THIRD_PARTY.md
	@echo "knap: wrote $(BUILD)/THIRD_PARTY.md"

package: knap ## make a Debian package of what `make install` installs
	@deps/setup packages "dpkg-dev dpkg-shlibdeps"
	@echo "knap: packaging $(BUILD)"
	@deploy/package $(BUILD)

# COMPAT_ARGS names systems; chroots are kept in build/compat.
compat: package ## install the package in fresh Debian and Ubuntu systems, use it there and remove it (minutes; needs root)
	@deps/setup packages debootstrap
	@$(if $(filter 0,$(shell id -u)),,sudo )tests/compat/run "$$(ls -t $(BUILD)/knap_*.deb | head -n 1)" $(BUILD)/compat $(COMPAT_ARGS)

reproducible: setup ## build the program twice in two folders and compare the bytes (takes many minutes)
	@tests/reproducible --jobs $(JOBS)

uninstall: ## remove the files of the last install
	@[ -f $(BUILD)/installed.txt ] || { echo "knap: $(BUILD) has no record of an install" >&2; exit 1; }
	@echo "knap: removing the files listed in $(BUILD)/installed.txt"
	@sed 's|^|$(DESTDIR)|' $(BUILD)/installed.txt | xargs -d '\n' rm -f
	@rm $(BUILD)/installed.txt

format: ## format the sources
	@deps/setup packages clang-format
	@echo "knap: formatting"
	@clang-format -i $(SOURCES)

format-check: ## check the formatting of the sources
	@deps/setup packages clang-format
	@clang-format --dry-run --Werror $(SOURCES)

# Not the tests: some of their names (fixtures, printers, malloc) are fixed by libraries.
tidy: setup ## run clang-tidy over the program and the library
	@deps/setup packages clang-tidy
	@$(MAKE) configure PRESET=tidy
	@echo "knap: running clang-tidy"
	@printf '%s\n' $(filter src/%.cpp tools/%.cpp serve/%.cpp hub/%.cpp cli/%.cpp examples/%.cpp,$(SOURCES)) | xargs -P $(JOBS) -n 1 clang-tidy -p build-tidy --quiet

clean: ## remove the build folders, but not the cached prefix and model
	@echo "knap: removing the build folders"
	@rm -rf build build-debug build-sanitize build-tsan build-tidy build-cuda build-check-cuda build-arm build-fuzz

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22
