# Two commands on a fresh Debian 12 machine: `make run` and `make test`. Everything lies in build*/.

BUILD ?= build
ASAN_BUILD ?= build-asan
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local

.PHONY: all build ui asan run test test-all test-kernels bench lint format fuzz install clean help

all: build

build: ui $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@tools/setup.sh build
	@meson setup $(BUILD) -Dtests=false -Dprefix=$(PREFIX) >/dev/null

# The page: a few seconds, and only after a change; npm only after a change of its lock.
ui: ui/dist/index.html

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	@tools/setup.sh ui
	@cd ui && npm ci --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

ui/dist/index.html: ui/node_modules/.package-lock.json ui/index.html ui/vite.config.ts ui/tsconfig.json \
		$(shell find ui/src ui/public -type f 2>/dev/null)
	@cd ui && { npm run --silent build || { rm -f dist/index.html; exit 1; }; }

# Unit tests and fuzz targets, with the sanitizers; libFuzzer needs clang.
asan: $(ASAN_BUILD)/build.ninja
	@ninja -C $(ASAN_BUILD) --quiet

$(ASAN_BUILD)/build.ninja:
	@tools/setup.sh build test
	@CC=clang meson setup $(ASAN_BUILD) -Dtests=true -Dfuzz=true \
		-Db_sanitize=address,undefined -Db_lundef=false >/dev/null

run: build
	@tools/setup.sh build run
	@tools/run.sh $(BUILD)/sonde

test:
	@tools/setup.sh build ui run test browser
	@$(MAKE) --no-print-directory build asan
	@python3 tools/test.py --asan $(ASAN_BUILD) --sonde $(BUILD)/sonde \
		--suite 'oracle=python3 tests/oracle/run.py --quick' \
		--suite 'ui=npm --prefix ui test --silent' \
		--suite 'browser=tests/browser/run.sh'

test-all:
	@tools/setup.sh build ui run test browser
	@tools/setup.sh arm64 || echo "test-all: going on without the arm64 packages" >&2
	@$(MAKE) --no-print-directory build asan
	@python3 tools/test.py --asan $(ASAN_BUILD) --sonde $(BUILD)/sonde \
		--suite 'oracle=python3 tests/oracle/run.py --all' \
		--suite 'ui=npm --prefix ui test --silent' \
		--suite 'browser=tests/browser/run.sh' \
		--suite 'arm64=tools/test-arm64.sh build-arm64'

# The tests of CPU profiles and of OOM kills once more, on Debian's own kernel in a virtual machine.
test-kernels: build
	@tools/setup.sh build run test kernels
	@tools/test-kernels.sh

bench: build
	@tools/setup.sh build ui run test browser
	@meson configure $(BUILD) -Dbench=true
	@ninja -C $(BUILD) --quiet
	@python3 bench/run.py --build $(BUILD) --only '$(ONLY)'

lint: build
	@tools/setup.sh build lint
	@tools/lint.sh $(BUILD)

format:
	@tools/setup.sh lint
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

fuzz: asan
	@python3 tools/fuzz.py --asan $(ASAN_BUILD) --seconds $(FUZZ_SECONDS)

install: build
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(BUILD) --quiet
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf build build-asan build-arm64 build-arm64.root ui/dist ui/node_modules

help:
	@echo 'make            build $(BUILD)/sonde (installs missing Debian packages first)'
	@echo 'make ui         build the web page alone, into ui/dist'
	@echo 'make run        profile this machine and serve the page; starts a demo where no Go program runs'
	@echo 'make test       unit tests, fuzz corpora, tests against real Go programs, in a browser, of the docs'
	@echo 'make test-all   the same with every Go toolchain and the arm64 build'
	@echo 'make bench      speed and memory, as in docs/BENCHMARKS.md; ONLY=heap,cpu for some of it'
	@echo 'make lint       clang-format, clang-tidy, Python and shell checks'
	@echo 'make fuzz       every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make install    into PREFIX=$(PREFIX): binary, manual page, completions'
	@echo 'make format     clang-format on all C files'
	@echo 'make clean      remove what was built'
