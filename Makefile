# SPDX-License-Identifier: GPL-2.0
# AF_EXS: "make help" lists the targets.

KDIR	?= /lib/modules/$(shell uname -r)/build
KERNEL	?= 6.12
PREFIX	?= /usr/local
FILE	?=
TESTS	?=
QUICK	?=
override QUICK := $(filter-out 0,$(QUICK))
BUILD	:= $(CURDIR)/build
DOCDIR	?= $(PREFIX)/share/doc/exs
export BUILD PREFIX DESTDIR KDIR DOCDIR

MAKEFLAGS += --no-print-directory
nproc	:= $(shell nproc)
jobs	 = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(nproc))
KERNELS	?= 6.1 6.12
kdir	 = $$(tests/vm/kernel $(1) kdir)
# Of what the tests load, as lint compiles it, too.
strict	:= W=1 KCFLAGS=-Werror

.PHONY: all
all: lib tools ## library and tools; and the module, if the running kernel's headers are installed
	@if [ -e "$(KDIR)/Makefile" ]; then scripts/build-module "$(KDIR)"; \
	else echo "The module was not built: no kernel headers in $(KDIR). To get them: $$(scripts/deps --headers);" \
		"or name others: make modules KDIR=..."; fi

##@ Building
.PHONY: deps modules stock-modules debug-kernel debug-modules lib tools examples tests
deps: ## install missing packages for all targets (apt-get)
	@scripts/deps build vm debug lint library bench series
	@tests/vm/programs

# These targets install missing packages, and so do the targets that they need; the others only name them.
deps check demo: export EXS_DEPS := install

modules: deps-build ## exs.ko for KDIR=..., in build/RELEASE/
	@scripts/build-module "$(KDIR)"

stock-modules: deps-build deps-vm ## exs.ko for Debian's 6.1 and 6.12, or KERNELS=7.3
	@set -e; for k in $(KERNELS); do tests/vm/stock $$k; scripts/build-module $(call kdir,$$k) $(strict); done

debug-kernel: deps-build deps-debug ## the kernel with all checkers, about 12 minutes the first time
	@tests/debug-kernel/build > /dev/null

debug-modules: debug-kernel ## exs.ko and exs_kunit.ko for the debug kernel
	@scripts/build-module $$(tests/debug-kernel/build) $(strict)

lib: deps-build ## libexs.so.1 and libexs.a, in build/lib/
	@$(MAKE) $(jobs) -C lib BUILD=$(BUILD)

tools: lib ## exs-cp, exs-perf, exs-run, in build/tools/
	@$(MAKE) $(jobs) -C tools BUILD=$(BUILD)

# With the files of "make install", installed again when the library has changed.
stage	:= $(BUILD)/stage
staged	:= $(stage)/lib/pkgconfig/exs.pc
examples: lib ## programs of the programmer's guide, in build/examples/
	@if [ -n "$$(find $(BUILD)/lib/libexs.so.1.0 lib/include lib/exs.pc.in -newer $(staged) 2>&1)" ]; then \
		rm -rf $(BUILD)/examples; \
		$(MAKE) -s -C lib install BUILD=$(BUILD) PREFIX=$(stage) LIBDIR=$(stage)/lib DESTDIR=; fi
	@PKG_CONFIG_PATH=$(dir $(staged)) $(MAKE) -s -C Documentation/examples OUT=$(BUILD)/examples CFLAGS="-O2 -g -Werror"

.PHONY: programs
programs: ## Debian's programs that the tests run over EXS, unpacked in build/programs/
	@tests/vm/programs

tests: lib tools examples deps-vm ## programs of the end-to-end tests, in build/tests/
	@$(MAKE) $(jobs) -C tests/e2e BUILD=$(BUILD)

.PHONY: deps-build deps-vm deps-debug deps-lint deps-library deps-bench deps-series
deps-build deps-vm deps-debug deps-lint deps-library deps-bench deps-series: deps-%:
	@scripts/deps $*

##@ Checking
.PHONY: check check-proto check-lib check-mutants check-kunit check-kunit-mutants series-check check-e2e check-debug lint
check: ## all of these, with a summary
	$(if $(QUICK),$(error make check runs everything: unset QUICK))
	@tests/check lint check-proto check-lib check-mutants check-kunit check-kunit-mutants series-check check-e2e \
		check-debug

lint: deps-build deps-vm deps-lint ## W=1, sparse (6.1 and 6.12, or KERNELS=7.3), checkpatch, manual pages, SPDX
	@set -e; for k in $(KERNELS); do tests/vm/stock $$k; done; tests/lint $(KERNELS)

check-proto: deps-build ## protocol engine in user space: model, fuzz, sanitizers
	@$(MAKE) $(jobs) -C tests/proto check BUILD=$(BUILD)

check-lib: deps-build deps-library ## libexs with a simulated kernel, under sanitizers; make install
	@$(MAKE) $(jobs) -C tests/lib check BUILD=$(BUILD)

check-mutants: deps-build ## mutants of protocol and library, which the tests must detect
	@tests/mutants/run

check-kunit: debug-modules deps-vm ## KUnit in the debug kernel
	@tests/run-kunit

check-kunit-mutants: debug-modules deps-vm ## mutants of the module, which KUnit must detect
	@tests/mutants/run --kunit

series-check: debug-modules deps-series ## patches against the newest kernel, in build/series/: applied, built, checkpatch
	@scripts/series --check $(BUILD)/series

check-e2e: tests stock-modules programs ## end to end on 6.1 and 6.12, or KERNELS=7.3; TESTS=PATTERN, QUICK=1 select
	@tests/run $(addprefix --kernel ,$(KERNELS)) $(if $(QUICK),--quick) $(TESTS)

check-debug: tests debug-modules ## the same under KASAN, lockdep, kmemleak, ..., rxe and siw
	@tests/run --kernel debug $(if $(QUICK),--quick) $(TESTS)

again: tests vm-modules ## TESTS=... in a machine that stays up: seconds, from the second time on; KERNEL=6.12|6.1|debug
	@tests/run --again --kernel $(KERNEL) $(if $(QUICK),--quick) $(TESTS)

##@ Using
.PHONY: vm vm2 demo bench again
ifeq ($(KERNEL),debug)
vm-modules: debug-modules
else
vm-modules: deps-build deps-vm
	@tests/vm/stock $(KERNEL)
	@scripts/build-module $(call kdir,$(KERNEL)) $(strict)
endif
.PHONY: vm-modules

vm: vm-modules tools ## a shell in a virtual machine with exs.ko and rxe; KERNEL=6.12|6.1|debug
	@tests/vm/vm $(KERNEL)

vm2: vm-modules tools ## a shell in the first of two connected machines
	@tests/vm/vm --pair $(KERNEL)

demo: vm-modules tools ## copy a file between two machines; FILE=...
	@tests/demo $(KERNEL) $(if $(FILE),'$(FILE)')

$(BUILD)/bench/connections: tests/bench/connections.c
	@mkdir -p $(@D)
	@$(CC) -O2 -Wall -Wextra -Werror -Wno-unused-parameter -pthread -o $@ $<

bench: tests stock-modules programs deps-bench $(BUILD)/bench/connections ## comparison with verbs, rsockets and TCP, in build/bench/; QUICK=1
	@tests/bench/run $(if $(QUICK),--quick) $(KERNEL)
	@tests/bench/real $(if $(QUICK),--quick) $(KERNEL)

##@ Installing
.PHONY: install uninstall clean distclean help
parts := lib tools Documentation/man

install: all ## library, tools, manual pages, guide and examples, and the module for KDIR
	@scripts/install --may
	@set -e; for p in $(parts); do $(MAKE) -C $$p install; done
	@scripts/install

uninstall: ## remove them, and the module for every kernel; with the same PREFIX and so on
	@scripts/install --may
	@set -e; for p in $(parts); do $(MAKE) -C $$p uninstall; done
	@scripts/install --remove

clean: ## remove everything built except the kernels
	@find build -mindepth 1 -maxdepth 1 ! -name debug-kernel ! -name 'stock-*' -exec rm -rf {} + 2> /dev/null || true

distclean: ## remove everything built
	@rm -rf build

help: ## print this text
	@echo 'New here?  make demo    copy a file between two virtual machines; installs missing packages'
	@echo '           make check   run all tests'
	@echo '           make && sudo make install    install'
	@echo
	@echo 'Directories: PREFIX=$(PREFIX) LIBDIR=PREFIX/lib MANDIR=PREFIX/share/man DOCDIR=PREFIX/share/doc/exs DESTDIR='
	@echo
	@awk 'BEGIN { FS = ":.*##" } /^##@/ { print "\n" substr($$0, 5) } \
		/^[a-z0-9-]+:.*##/ { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
