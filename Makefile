# The two commands of the README are `make demo` and `make test`; `make ci` is what CI runs.
# CARGO_TARGET_DIR is honoured, as by cargo itself.

TARGET := $(or $(CARGO_TARGET_DIR),target)
PLUMB := $(TARGET)/release/plumb
DEMO := demo

.PHONY: demo test test-conditions test-kernels test-arm ci deps build bench web install dist static clean

demo: deps-demo $(DEMO)/slow
	cargo build --release --quiet
	@echo
	@echo '$$ plumb record -o $(DEMO)/profile.plumb -- $(DEMO)/slow'
	@$(PLUMB) record -o $(DEMO)/profile.plumb -- $(DEMO)/slow
	@echo
	@echo '$$ plumb report --min 2 $(DEMO)/profile.plumb'
	@PAGER= $(PLUMB) report --min 2 $(DEMO)/profile.plumb
	@echo
	@$(PLUMB) flame $(DEMO)/profile.plumb -o $(DEMO)/flame.html
	@echo
	@echo 'The flame graph is in $(CURDIR)/$(DEMO)/flame.html: open it in a browser.'
	@echo 'The command itself is $(abspath $(PLUMB)); `make install` puts it on your PATH.'

# Optimised, without frame pointers, with line tables: what a release build of a C++ program looks like.
$(DEMO)/slow: bench/demo/slow.cpp | deps-demo
	@mkdir -p $(DEMO)
	g++ -std=c++17 -O2 -g1 -fomit-frame-pointer $< -o $@

test: deps-test
	cargo run -q -p xtask -- test

# Every feature on the running kernel and on others under QEMU: six minutes. KERNELS="host 5.10 6.1" chooses, UPDATE=1 writes docs/kernels.md.
test-kernels: deps-kernels
	xtask/kernels/run.sh

# The same on an emulated arm64 machine: Linux 6.12, and what depends on the kernel on 6.1, the newest, and with pages of 16 KiB; and stacks at each
# instruction of programs. With KERNELS or FEATURES only those.
test-arm: deps-arm
	FEATURES="$(FEATURES)" KERNELS="$(or $(KERNELS),6.12-arm64 6.1-arm64 newest-arm64 6.12-arm64-16k)" QUICK=$(if $(UPDATE),,1) xtask/kernels/run.sh
	$(if $(KERNELS)$(FEATURES),,xtask/kernels/oracle.sh)

# The tests as machines differ: SIGINT ignored, one processor, busy neighbours, no rights, ... `make test-conditions CONDITIONS="busy"`
test-conditions: deps-test
	xtask/conditions.sh $(CONDITIONS)

ci: deps-ci
	xtask/ci.sh

bench: deps-test build
	bench/cpu/build.sh && bench/cpu/run.py

build:
	cargo build --release

# The bundle that the flame graph page embeds is committed, so only who changes web/ needs node.
web:
	cd web && npm ci --no-audit --no-fund && npm run build

# To /usr/local as root, else to ~/.local; PREFIX=DIR chooses: the command, its manual pages and completions.
PREFIX ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)
install: build
	install -Dm 755 $(PLUMB) $(DESTDIR)$(PREFIX)/bin/plumb
	$(PLUMB) generate man $(DESTDIR)$(PREFIX)/share/man/man1
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(PLUMB) generate completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/plumb
	$(PLUMB) generate completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_plumb
	$(PLUMB) generate completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/plumb.fish
	@echo 'Installed: $(DESTDIR)$(PREFIX)/bin/plumb'

# An archive and, on Debian, a package for each of these processors, and the Helm chart, in dist/. Others than this machine's take a cross compiler.
MACHINES ?= $(shell uname -m) $(if $(shell command -v aarch64-linux-gnu-gcc),$(filter-out $(shell uname -m),aarch64))
dist:
	xtask/dist.sh $(MACHINES)

# One program for each that needs no library, as the image in deploy/Dockerfile has it.
static:
	for machine in $(MACHINES); do xtask/build.sh $$machine static; done

deps: deps-test

deps-%:
	@xtask/deps.sh $*

clean:
	cargo clean
	rm -rf $(DEMO)
