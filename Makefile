# SPDX-License-Identifier: MIT
# Builds, checks and installs xqos. `make` alone lists the targets.

PREFIX = /usr/local
DESTDIR =

# `make CARGO=...` uses a cargo other than that of scripts/setup.
CARGO = scripts/cargo

# The folder from which Xorg reads configuration. With a private prefix, such as a home folder, the file must not affect
# all users' servers, so it goes into a folder that Xorg reads only with -configdir.
XORG_CONF_DIR = $(strip $(if $(filter /usr,$(PREFIX)),/usr/share/X11/xorg.conf.d,\
	$(if $(filter /usr/local /opt/%,$(PREFIX)),/etc/X11/xorg.conf.d,\
	$(PREFIX)/share/X11/xorg.conf.d)))

# The folder from which desktops start programs with a session. With a private prefix, set XDG_CONFIG_DIRS.
XDG_AUTOSTART_DIR = $(strip $(if $(filter /usr /usr/local /opt/%,$(PREFIX)),/etc/xdg/autostart,\
	$(PREFIX)/etc/xdg/autostart))

# Tests and the targets below expect the build in target/, even if the user's cargo configuration names another folder.
export CARGO_TARGET_DIR := $(CURDIR)/target

PROGRAMS = xqos xqos-wire xqos-bench
XQOS = target/release/xqos

help:
	@echo 'make build      builds xqos, its X server module and libxqos'
	@echo 'make demo       measures X11 clients with and without xqos: out/demo/index.html'
	@echo 'make bench      runs all benchmarks'
	@echo 'make test       runs all tests except those of test-lab: test-pure, then test-servers, which'
	@echo '                print how long they took and their five slowest tests'
	@echo 'make test-pure  runs the tests that start no X server and need no release build'
	@echo 'make test-servers'
	@echo '                runs the tests of servers, of the programs and of libxqos'
	@echo 'make test-lab   runs the tests with the programs of the lab (needs scripts/setup --for lab)'
	@echo 'make test-machine  runs tests in virtual machines (needs scripts/setup --for machine)'
	@echo 'make proto      generates the types of the extension in Rust and C from proto/xqos.xml'
	@echo 'make lint       checks formatting, clippy, shell and page scripts, and man pages'
	@echo 'make deb        builds Debian packages in target/deb; scripts/check-packages tests them'
	@echo 'make install    installs the build (PREFIX=$(PREFIX), DESTDIR=$(DESTDIR),'
	@echo '                XORG_CONF_DIR=$(XORG_CONF_DIR),'
	@echo '                XDG_AUTOSTART_DIR=$(XDG_AUTOSTART_DIR))'
	@echo 'make uninstall  removes an installation with the same PREFIX and DESTDIR'
	@echo 'make clean      removes the build; results in out/ stay'

build:
	$(CARGO) build --release --locked --workspace
	$(MAKE) -C libxqos all

demo: build
	$(XQOS) bench run demo --out out/demo

bench: build
	$(XQOS) bench run all --out out/bench

SKIPS = $(CURDIR)/target/skips
WITH_LIBC = $(shell awk '$$1 == "run" {print $$2} $$1 == "skip" {print "--skip", $$2}' crates/qos/server/tests/with-libc)

# The tests in crates/*/*/tests that start X servers, or programs of the release build. All others belong to test-pure.
SERVER_TESTS = bench command_line real_servers stock_servers viewer
TEST_FILES = $(patsubst %/main.rs,%,$(wildcard crates/*/*/tests/*.rs crates/*/*/tests/*/main.rs))
PURE_TESTS = $(or $(filter-out $(SERVER_TESTS),$(sort $(basename $(notdir $(TEST_FILES))))),\
	$(error there are no tests in crates/*/*/tests))

CARGO_TEST = $(CARGO) test --workspace --locked
CARGO_TEST_PURE = $(CARGO_TEST) --lib --bins --examples $(addprefix --test ,$(PURE_TESTS))
CARGO_TEST_SERVERS = $(CARGO_TEST) $(addprefix --test ,$(SERVER_TESTS))

# Tests of the command line and of libxqos load the release module into servers. A test that cannot run adds itself to
# the file $(SKIPS); in CI, a skipped test is an error.
#
# Most tests wait for servers and programs, so run one more at a time than there are processors.
test test-pure test-servers test-lab: export XQOS_SKIPS = $(SKIPS)
# Also lets tests find the programs of scripts/setup --for lab (scripts/test-runner).
test-lab: export XQOS_TEST_LAB = 1
test test-pure test-servers test-lab: export RUST_TEST_THREADS ?= $(shell expr 1 + $$(nproc))
test: build
	: > $(SKIPS)
	$(TEST_PURE)
	$(TEST_SERVERS)
	$(SHOW_SKIPS)

test-pure:
	: > $(SKIPS)
	$(TEST_PURE)
	$(SHOW_SKIPS)

test-servers: build
	: > $(SKIPS)
	$(TEST_SERVERS)
	$(SHOW_SKIPS)

# The printed time excludes builds, and checks that consist of builds.
define TEST_PURE
scripts/check-no-std
scripts/check-loom
$(CARGO_TEST_PURE) --no-run
+scripts/test-times test-pure $(MAKE) --no-print-directory run-pure
endef

define TEST_SERVERS
$(CARGO_TEST_SERVERS) --no-run
+scripts/test-times test-servers $(MAKE) --no-print-directory run-servers
endef

# Only the documentation of xqos-wire has examples, and rustdoc would need seconds for every other crate.
run-pure:
	$(CARGO_TEST_PURE)
	$(CARGO) test --locked --doc --package xqos-wire

run-servers:
	$(CARGO_TEST_SERVERS)
	XQOS_HOST=libc $(CARGO_TEST) --test real_servers -- $(WITH_LIBC)
	$(MAKE) -C libxqos check

test-lab: build
	: > $(SKIPS)
	$(CARGO) test --locked -p xqos-server --test real_servers -- xwayland::
	$(CARGO) test --locked -p xqos --test command_line -- --ignored prometheus::
	$(CARGO) test --locked -p xqos-wire-program --test command_line -- --ignored near::
	$(CARGO) test --locked -p xqos-lab --lib -- --ignored fleet::
	$(SHOW_SKIPS)

# In virtual machines; docs/machine.md says how long it takes.
test-machine: build deb
	scripts/check-exact
	scripts/try-machine --suite bookworm --suite trixie

define SHOW_SKIPS
@cat $(SKIPS)
@if [ -n "$$CI" ] && [ -s $(SKIPS) ]; then echo 'CI must run all tests: install what is missing, or change the test'; exit 1; fi
@echo "passed; tests skipped: $$(wc -l < $(SKIPS))"
endef

# Run this after changing proto/xqos.xml.
proto:
	proto/generate.py

# The build is needed only for the man pages, which are generated from the definition of the command line.
lint: build
	for program in $(PROGRAMS); do target/release/$$program man target/man || exit; done
	scripts/lint target/man man man/*/

# Builds everything again in target/deb/cargo, because packages must not contain paths of this machine.
deb:
	scripts/deb

# Does not build, so that `sudo make install` needs no compiler and leaves no root-owned files in target/.
install:
	@XORG_CONF_DIR='$(XORG_CONF_DIR)' XDG_AUTOSTART_DIR='$(XDG_AUTOSTART_DIR)' MAKE='$(MAKE)' scripts/install '$(PREFIX)' '$(DESTDIR)'

uninstall:
	@scripts/install --remove '$(PREFIX)' '$(DESTDIR)'

clean:
	rm -rf target
	$(MAKE) -C libxqos clean

.PHONY: help build demo bench test test-pure test-servers run-pure run-servers test-lab test-machine proto lint deb install uninstall clean
