# Two commands on a fresh Debian 12 machine: `make run` and `make test`. Everything is built in build*/.

BUILD ?= build
ASAN_BUILD ?= build-asan
FUZZ_BUILD ?= build-fuzz
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
# progress TEXT, before a command: shows for how long it has been running.
progress = bash -c 'source tools/progress.sh; progress_run "$$@"' progress '$(1)'
# With ccache where it is installed; for gcc meson finds it by itself.
CLANG = $(strip $(shell command -v ccache) clang)

.PHONY: all build ui asan run test test-all test-build test-flaky test-kernels test-fresh bench lint format \
	fuzz install clean help

all: build

build: ui $(BUILD)/build.ninja
	@tools/build.sh $(BUILD)

$(BUILD)/build.ninja:
	@tools/setup.sh build
	@$(call progress,build: configuring $(BUILD)) meson setup $(BUILD) -Dtests=false -Dprefix=$(PREFIX)

# The page: rebuilt only after a change; npm runs only if its lock file changed.
ui: ui/dist/index.html

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	@tools/setup.sh ui
	@$(call progress,ui: fetching npm packages) npm --prefix ui ci --no-audit --no-fund --loglevel=error
	@touch $@

ui/dist/index.html: ui/node_modules/.package-lock.json ui/index.html ui/vite.config.ts ui/tsconfig.json \
		$(shell find ui/src ui/public -type f 2>/dev/null)
	@echo 'ui: building the page'
	@cd ui && { npm run --silent build || { rm -f dist/index.html; exit 1; }; }

# Unit tests and fuzz targets, with the sanitizers; libFuzzer needs clang. The benchmarks must compile.
asan: $(ASAN_BUILD)/build.ninja
	@tools/build.sh $(ASAN_BUILD)

$(ASAN_BUILD)/build.ninja:
	@tools/setup.sh build test
	@echo 'build: configuring $(ASAN_BUILD), with the sanitizers'
	@CC='$(CLANG)' meson setup $(ASAN_BUILD) -Dtests=true -Dfuzz=true -Dbench=true \
		-Db_sanitize=address,undefined -Db_lundef=false >/dev/null

run:
	@tools/setup.sh build ui run
	@$(MAKE) --no-print-directory build
	@tools/run.sh $(BUILD)/sonde

test: test-build
	@python3 tools/test.py --asan $(ASAN_BUILD) --sonde $(BUILD)/sonde -k '$(K)'

test-all: test-build
	@tools/setup.sh arm64 || echo "test-all: continuing without the arm64 packages" >&2
	@python3 tools/test.py --asan $(ASAN_BUILD) --sonde $(BUILD)/sonde -k '$(K)' --all

# Repeats the suites: idle, busy, stalled, on one CPU, with and without tracefs.
test-flaky: test-build
	@python3 tools/flaky.py --asan $(ASAN_BUILD) --sonde $(BUILD)/sonde -k '$(K)' \
		$(if $(N),-n $(N)) $(if $(C),-c $(C))

test-build:
	@tools/setup.sh build ui run test browser
	@$(MAKE) --no-print-directory build asan

# The tests of CPU profiles and of OOM kills once more, on Debian's own kernel in a virtual machine.
test-kernels: build
	@tools/setup.sh build run test kernels
	@tools/test-kernels.sh

# Both commands once more, on a machine that was just installed; TEST=COMMAND for another one.
test-fresh: export FRESH_TEST = $(or $(TEST),make test$(if $(K), K='$(K)'))
test-fresh:
	@tools/setup.sh fresh
	@tools/test-fresh.sh $(STEP)

bench: build
	@tools/setup.sh build ui run test browser bench
	@meson configure $(BUILD) -Dbench=true
	@tools/build.sh $(BUILD)
	@python3 bench/run.py --build $(BUILD) --only '$(ONLY)'

lint: build
	@tools/setup.sh build lint
	@tools/lint.sh $(BUILD)

format:
	@tools/setup.sh lint
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

fuzz: $(if $(PLAIN),$(FUZZ_BUILD)/build.ninja,asan)
	@$(if $(PLAIN),tools/build.sh $(FUZZ_BUILD))
	@python3 tools/fuzz.py --build $(if $(PLAIN),$(FUZZ_BUILD),$(ASAN_BUILD)) \
		--seconds $(FUZZ_SECONDS) $(if $(RUNS),--runs $(RUNS)) -k '$(K)'

# The fuzz targets alone: several times faster.
$(FUZZ_BUILD)/build.ninja:
	@tools/setup.sh build test
	@echo 'build: configuring $(FUZZ_BUILD)'
	@CC='$(CLANG)' meson setup $(FUZZ_BUILD) -Dtests=true -Dfuzz=true -Db_lundef=false >/dev/null

install: build
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@tools/build.sh $(BUILD)
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf build build-asan build-fuzz build-arm64 build-arm64.root build-fresh ui/dist ui/node_modules

help:
	@echo 'make            build $(BUILD)/sonde (installs missing Debian packages first)'
	@echo 'make ui         build only the web page, into ui/dist'
	@echo 'make run        profile this machine and serve the web page; starts a demo if no Go program runs'
	@echo 'make test       all tests: unit, fuzz corpora, real programs, browser, docs'
	@echo 'make test-all   the same with every Go toolchain and the arm64 build'
	@echo 'make test-flaky repeat the suites; N=10 times, C=busy,stalls conditions, K=python suites'
	@echo 'make test-fresh make run and make test in a fresh Debian 12; STEP=run or STEP=test, K=python suites'
	@echo 'make bench      write docs/BENCHMARKS.md; ONLY=heap,cpu for parts of it'
	@echo 'make lint       clang-format, clang-tidy, Python and shell checks'
	@echo 'make fuzz       run every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS); RUNS=1000000 until all have run so often;'
	@echo '                PLAIN=1 without the sanitizers'
	@echo 'make install    install binary, manual page and completions into PREFIX=$(PREFIX)'
	@echo 'make format     run clang-format on all C files'
	@echo 'make clean      remove build directories'
