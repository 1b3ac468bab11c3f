# Entry points for people and CI; the build itself is CMake (CMakePresets.json).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
BENCH_SECONDS ?= 10,60,600
LINT_BASE ?=
PACK_SPEECH_MINUTES ?= 60
PACK_PICTURE_MINUTES ?= 150

LAUNCHER := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache,)
QUIETLY := scripts/quietly.sh
NEWSCASTER := build/release/newscaster

# configure PRESET, EXTRA OPTIONS; compile PRESET, EXTRA OPTIONS
configure = $(QUIETLY) "Configuring $(1)" build/$(1)/configure.log \
	cmake --preset $(1) $(LAUNCHER) $(2)
compile = $(QUIETLY) "Building $(1) (log: build/$(1)/build.log)" build/$(1)/build.log \
	cmake --build --preset $(1) --parallel $(JOBS) $(2)
run_tests = ctest --test-dir build/$(1) --output-on-failure --no-tests=error -j $(JOBS) $(2)

# Some kernels place memory where GCC 12's ThreadSanitizer cannot follow; no randomisation, no clash.
NO_ASLR := $(shell setarch $$(uname -m) -R true 2>/dev/null && echo "setarch $$(uname -m) -R")

.PHONY: help
help: ## Show this list
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

.PHONY: demo
demo: ## Set up, build and render examples/speech.wav to out/demo.mp4
	@scripts/setup.sh demo
	@if [[ ! -f build/release/build.ninja ]]; then \
		$(call configure,release,-DNEWSCASTER_BUILD_TESTS=OFF); fi
	@$(call compile,release,--target newscaster_cli)
	@mkdir -p out
	@$(NEWSCASTER) render examples/speech.wav -o out/demo.mp4
	@echo "out/demo.mp4"

.PHONY: build
build: ## Set up and build everything, tests included (build/release)
	@scripts/setup.sh test
	@$(call configure,release,-DNEWSCASTER_BUILD_TESTS=ON)
	@$(call compile,release)

.PHONY: test
test: build ## Build everything and run all tests
	@$(call run_tests,release)

.PHONY: lint
lint: ## clang-format and clang-tidy; LINT_BASE=main checks changed files only
	@scripts/setup.sh test
	@$(call configure,release,-DNEWSCASTER_BUILD_TESTS=ON)
	@scripts/lint.sh build/release $(LINT_BASE)

# TBB, inside OpenVINO, otherwise opens a library in a way (RTLD_DEEPBIND) no sanitizer survives.
ASAN_ENVIRONMENT := TBB_ENABLE_SANITIZERS=1 \
	ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 \
	LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 \
	UBSAN_OPTIONS=print_stacktrace=1
# Libraries that come without ThreadSanitizer synchronise where it cannot see.
TSAN_ENVIRONMENT := TBB_ENABLE_SANITIZERS=1 TSAN_OPTIONS=ignore_noninstrumented_modules=1

.PHONY: asan
asan: ## Run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/setup.sh test
	@$(call configure,asan)
	@$(call compile,asan)
	@$(ASAN_ENVIRONMENT) $(call run_tests,asan)

.PHONY: tsan
tsan: ## Run the tests under ThreadSanitizer
	@scripts/setup.sh test
	@$(call configure,tsan)
	@$(QUIETLY) "Building tsan (log: build/tsan/build.log)" build/tsan/build.log \
		env $(TSAN_ENVIRONMENT) $(NO_ASLR) cmake --build --preset tsan --parallel $(JOBS)
	@$(TSAN_ENVIRONMENT) $(NO_ASLR) $(call run_tests,tsan)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_SECONDS each (clang, libFuzzer)
	@scripts/setup.sh fuzz
	@$(call configure,fuzz)
	@$(call compile,fuzz,--target newscaster_fuzzers)
	@scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

.PHONY: bench
bench: ## Run all benchmarks; results go to docs/benchmarks (BENCH_SECONDS=10 is quick)
	@scripts/setup.sh bench
	@$(QUIETLY) "Configuring bench" build/bench/configure.log cmake -S . -B build/bench -G Ninja \
		-DCMAKE_BUILD_TYPE=Release -DNEWSCASTER_BUILD_BENCH=ON -DNEWSCASTER_BUILD_TESTS=OFF \
		$(LAUNCHER)
	@$(QUIETLY) "Building bench (log: build/bench/build.log)" build/bench/build.log \
		cmake --build build/bench --parallel $(JOBS)
	@scripts/bench.sh build/bench $(BENCH_SECONDS)

# The recipe of the default pack (docs/training.md). PYTHON= names an interpreter with PyTorch and onnx.
TRAINING_ENV := build/training/env
PYTHON ?= /usr/bin/python3

.PHONY: training-env
training-env:
	@scripts/setup.sh training
	@if [[ ! -f $(TRAINING_ENV)/ready ]]; then \
		$(QUIETLY) "Preparing $(TRAINING_ENV)" build/training/env.log bash -c \
			'$(PYTHON) -m venv --clear --system-site-packages $(TRAINING_ENV) && \
			$(TRAINING_ENV)/bin/python -m pip install -q --disable-pip-version-check --no-input \
				--no-deps -r training/studio/requirements.txt && \
			touch $(TRAINING_ENV)/ready'; fi

.PHONY: pack-smoke
pack-smoke: build training-env ## Run every step of the pack's recipe at toy size (minutes, CPU)
	@$(QUIETLY) "Making a toy pack (log: build/training/smoke.log)" build/training/smoke.log \
		scripts/pack_smoke.sh $(TRAINING_ENV)/bin/python $(NEWSCASTER) build/training/smoke

.PHONY: pack
pack: training-env ## Train the default pack from nothing into build/training (hours, wants a GPU)
	@scripts/pack.sh $(TRAINING_ENV)/bin/python build/training/pack $(PACK_SPEECH_MINUTES) \
		$(PACK_PICTURE_MINUTES)

.PHONY: install
install: build ## Install to PREFIX (default /usr/local); DESTDIR is respected
	@$(QUIETLY) "Installing to $(PREFIX)" build/release/install.log \
		cmake --install build/release --prefix $(PREFIX)

.PHONY: clean
clean: ## Remove build results and rendered files; .venv stays
	@rm -rf build out
