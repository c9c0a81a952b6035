# xpusim. Everything is built out of tree under build/.
#
#   make            build/xpusim
#   make demo       set up, build, compare policies on the papers' mixed workload
#   make check      set up, build, run every test
#   make asan ubsan the same tests under a sanitizer; make sanitize: under both at once
#   make tsan       the tests of what has threads, under the thread sanitizer
#   make clang      build/clang without optimisation, whose results determinism.sh compares
#   make fuzz       every reader on coverage-guided inputs, SECONDS=60 in all
#   make campaign   random runs over everything, each four ways, HOURS=1 long
#   make unseen     a minute of inputs, runs and relations with numbers that are new every time (tests/unseen.sh)
#   make mutants    faults put in by hand, and which test sees each (tests/mutants/README.md);
#                   BLIND=n SEED=s: n drawn at random over the sources; DIFF=main: among the lines changed since
#   make statistics every statistic against scipy on random samples, SEED=1 (needs scipy)
#   make originals  openvino-cb beside openvino.genai, llama-cpp beside llama.cpp's server, step for step (tests/originals);
#                   MUST=--must: fails where an original cannot be installed
#   make docs       every page as a site with search, in build/docs/site (needs mkdocs: docs/requirements.txt)
#   make gallery    the pictures of README.md and the demo's page again
#   make figures    docs/figures.md: every figure of the papers made again
#   make wasm       build/xpusim.wasm, the simulator for a page that computes: view --recompute (docs/live-page.md)
#   make fast       build/fast/xpusim, which GCC optimises by profiles of real runs: the same results, sooner
#   make archive    docs/leaderboard.md: every shipped policy on every suite
#   make accuracy   docs/accuracy.md: how far predictions of every class are off
#   make bench lint format golden-update validation sensitivity install uninstall deb clean

CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
OPT     ?= -O2
WERROR  ?= -Werror
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wundef -Wvla \
           -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings
# Of a changed tree also what was changed: results of unlike sources must not pass for alike.
REVISION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
ifneq (,$(findstring -dirty,$(REVISION)))
REVISION := $(REVISION)-$(shell git diff HEAD 2>/dev/null | git hash-object --stdin | cut -c1-8)
endif

# -ffp-contract=off and no -march: results must not depend on the compiler or the processor.
ALL_CPPFLAGS = -I. -D_POSIX_C_SOURCE=200809L $(CPPFLAGS)
ALL_CFLAGS   = -std=c17 $(OPT) -g -ffp-contract=off $(WARN) $(WERROR) $(CFLAGS) $(XCFLAGS)
LDLIBS       = $$(pkg-config --libs gsl libcjson sqlite3 zlib) -lcsv -lpthread -ldl -lm
# A third of the time of a short command is the loader's, for shared libraries and for addresses that differ from start to
# start. So programs have Debian's static libraries where it has them, and fixed addresses. GSL stays shared: a plug-in that
# uses it may take the program's. LINK=shared: nothing of that, for packages.
LINK        ?= $(if $(SHARED)$(findstring -fsanitize,$(XCFLAGS))$(filter-out /%,$(shell for l in sqlite3 csv z; do \
               $(CC) -print-file-name=lib$$l.a; done)),shared)
PROGRAM_LIBS = $(if $(filter shared,$(LINK)),$(LDLIBS),-no-pie -lgsl -lgslcblas -Wl,-Bstatic -lsqlite3 -lcsv -lz \
               -Wl,-Bdynamic -lcjson -lpthread -ldl -lm)
# Why an assertion's mark is ours: tests/helpers/suite.c.
CHECK_LIBS   = -Wl,--wrap=_mark_point $$(pkg-config --libs check)

# Builds that test check the invariants inside too (SIM_ASSERT, sim/base/err.h). A debugger's build:
# make OPT=-O0 XCFLAGS=-DSIM_DEBUG BUILD=build/debug
ASSERTS := -DSIM_DEBUG

# Engines of real execution are shared objects of their own (sim/api/engine.h), built when what they
# need is there: `make engines` fetches it. The program is the same with and without them.
ENGINE_HOME := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/xpusim
GGML        := $(wildcard $(ENGINE_HOME)/ggml-0.25.3)
OPENVINO    := $(wildcard $(ENGINE_HOME)/openvino-2026.4.1)
comma       := ,
ENGINES     := $(if $(GGML),$(BUILD)/engines/ggml.so) $(if $(OPENVINO),$(BUILD)/engines/openvino.so)
ENGINE_SRC  := $(wildcard hwmodels/engines/ggml*.c hwmodels/engines/openvino*.c)

SRC      := $(filter-out $(ENGINE_SRC),\
            $(foreach d,sim policies hwmodels traces plots experiments,$(wildcard $(d)/*.c $(d)/*/*.c)))
LIB_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(filter-out experiments/commands/main.c,$(SRC)))
HELP_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/helpers/*.c))
# Tests are one program, so that one link serves all; any file's tests are a program of their own on
# request: make build/tests/unit/check_rng.
CHECKED  := $(wildcard tests/unit/check_*.c tests/oracle/check_*.c tests/conformance/check_*.c)
CHECK_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(CHECKED))
TESTS    := $(BUILD)/tests/check
BENCHES  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/bench_*.c))
BENCH_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(wildcard tests/bench/bench_*.c),$(wildcard tests/bench/*.c)))

# With SHARED=1 programs link a shared library, so that one changed file costs one link (make mutants).
LIB := $(BUILD)/libxpusim.$(if $(SHARED),so,a)

all: $(BUILD)/xpusim $(ENGINES)
tests: $(BUILD)/xpusim $(TESTS) $(BENCHES)

$(BUILD)/xpusim: $(BUILD)/experiments/commands/main.o $(LIB) policies/plugin.list
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) -Wl,--dynamic-list=policies/plugin.list -o $@ $(filter-out %.list,$^) $(PROGRAM_LIBS)

engines: $(BUILD)/setup.stamp
	@sh .ci/setup.sh engines
	@$(MAKE) all

$(BUILD)/engines/ggml.so: $(wildcard hwmodels/engines/ggml*.c) hwmodels/engines/ggml_impl.h sim/api/engine.h \
        $(BUILD)/flags $(GGML)/processor
	@mkdir -p $(@D)
	@echo "cc hwmodels/engines/ggml*.c"
	@$(CC) $(ALL_CPPFLAGS) -isystem $(GGML)/include $(ALL_CFLAGS) $(LDFLAGS) -fPIC -shared -o $@ $(filter %.c,$^) \
	    $(GGML)/lib/libggml-cpu.a $(GGML)/lib/libggml-base.a -Wl,--exclude-libs,ALL -lstdc++ -lpthread -lm

$(BUILD)/engines/openvino.so: $(wildcard hwmodels/engines/openvino*.c) $(wildcard hwmodels/engines/openvino*.h) \
        hwmodels/engines/bench.h sim/api/engine.h hwmodels/kernel_numbers.h $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "cc hwmodels/engines/openvino*.c"
	@$(CC) $(ALL_CPPFLAGS) -isystem $(OPENVINO)/include $(ALL_CFLAGS) $(LDFLAGS) -fPIC -shared -o $@ \
	    $(filter %.c,$^) $$(ls $(OPENVINO)/libs/libopenvino_c.so.*) -Wl,-rpath,$(OPENVINO)/libs -lm

$(BUILD)/libxpusim.a: $(LIB_OBJ)
	@rm -f $@
	@ar rcs $@ $^

$(BUILD)/libxpusim.so: $(LIB_OBJ)
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ $(LDLIBS)

# The packages come before the first object, also under -j. The version is compiled into the two
# files that print it; they are rebuilt when the revision changes.
$(BUILD)/setup.stamp:
	@mkdir -p $(BUILD)
	@sh .ci/setup.sh base
	@touch $@

# Stamps that change only with their text, so that what depends on them is rebuilt exactly then:
# the revision and the data folder are compiled into the files that use them, and another compiler
# or other flags rebuild everything.
$(BUILD)/revision: STAMP = $(REVISION)
$(BUILD)/prefix: STAMP = $(PREFIX)
$(BUILD)/flags: STAMP = $(CC) $(CPPFLAGS) $(ALL_CFLAGS)
$(BUILD)/revision $(BUILD)/prefix $(BUILD)/flags: FORCE
	@mkdir -p $(BUILD)
	@echo '$(STAMP)' | cmp -s - $@ || echo '$(STAMP)' >$@

VERSIONED := $(BUILD)/experiments/commands/main.o $(BUILD)/experiments/run/config.o $(BUILD)/experiments/sweep/sweep.o
$(VERSIONED): $(BUILD)/revision
$(VERSIONED): ALL_CPPFLAGS += -DXPUSIM_REVISION='"$(REVISION)"'
$(BUILD)/sim/base/datadir.o: $(BUILD)/prefix
$(BUILD)/sim/base/datadir.o: ALL_CPPFLAGS += -DXPUSIM_DATADIR='"$(PREFIX)/share/xpusim"'
$(BUILD)/hwmodels/engines/engines.o: $(BUILD)/prefix
$(BUILD)/hwmodels/engines/engines.o: ALL_CPPFLAGS += -DXPUSIM_LIBDIR='"$(PREFIX)/lib/xpusim"'

$(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/setup.stamp
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/check: $(CHECK_OBJ)
$(CHECK_OBJ:.o=): $(BUILD)/tests/check.o
$(CHECK_OBJ:.o=) $(TESTS): $(BUILD)/%: $(BUILD)/%.o $(HELP_OBJ) $(LIB)
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(CHECK_LIBS) $(PROGRAM_LIBS)

$(BENCHES): $(BUILD)/%: $(BUILD)/%.o $(BENCH_OBJ) $(HELP_OBJ) $(BUILD)/libxpusim.a
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(LDLIBS)

check: $(BUILD)/xpusim $(ENGINES) $(TESTS)
	@BUILD=$(BUILD) sh tests/run.sh $(CHECKED)

# make sanitize GOAL=unseen: under the sanitizers.
unseen: $(BUILD)/tests/campaign/campaign $(TESTS)
	@BUILD=$(BUILD) sh tests/unseen.sh

demo: $(BUILD)/xpusim
	@BUILD=$(BUILD) sh experiments/demo.sh

# Engines are C++ inside: the sanitizer must know its exceptions before the first one is loaded. Lines of code in reports need
# -g1. SANITIZED: tests/run.sh leaves out what exercises no code of its own.
sanitized = SANITIZED=yes ASAN_OPTIONS=abort_on_error=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    $(MAKE) $(or $(GOAL),check) BUILD=build/$@ OPT=-O1 \
    XCFLAGS='$(ASSERTS) -g1 -fsanitize=$(1) -fno-sanitize-recover=all -fno-omit-frame-pointer' \
    $(if $(strip $(ENGINES)),LDFLAGS='-Wl$(comma)--no-as-needed -lstdc++ -Wl$(comma)--as-needed')
asan:
	+$(call sanitized,address)

ubsan:
	+$(call sanitized,undefined)

sanitize:
	+$(call sanitized,address$(comma)undefined)

# Interleavings on a virtual host change stacks by themselves, so they have no threads to look at.
THREADED := $(wildcard tests/conformance/check_drive*.c tests/conformance/check_observe.c \
    $(patsubst %,tests/unit/check_%.c,backends bench cpu_backend host measure_parts measure_windows opencl real_devices \
    simdev store_shared windows worker))
threads: $(TESTS)
	@BUILD=$(BUILD) SCRIPTS= sh tests/run.sh $(THREADED)

tsan:
	+SANITIZED=yes TSAN_OPTIONS=suppressions=tests/tsan.supp $(MAKE) threads BUILD=build/tsan OPT=-O1 \
	    XCFLAGS='$(ASSERTS) -g1 -fsanitize=thread -fno-omit-frame-pointer'

# Another compiler and no optimisation, whose results tests/golden/determinism.sh compares.
clang:
	@$(MAKE) all CC=clang OPT=-O0 XCFLAGS='$(ASSERTS) -g0' BUILD=build/clang

# GCC's profiles of the runs of tests/bench/train.sh, then everything again by them and all files as
# one. Whatever is built in build/fast is built so: make bench BUILD=build/fast, make install BUILD=build/fast.
PROFILE := -fprofile-use -fprofile-partial-training -Wno-missing-profile -flto=auto
ifeq ($(BUILD),build/fast)
XCFLAGS := $(PROFILE)
endif
fast:
	@rm -rf build/fast
	@$(MAKE) BUILD=build/fast PROFILE=-fprofile-generate build/fast/xpusim
	@sh tests/bench/train.sh build/fast/xpusim
	@$(MAKE) BUILD=build/fast all

bench: $(BUILD)/xpusim $(BENCHES)
	@for b in $(BENCHES); do echo "== $$(basename $$b)"; BUILD=$(BUILD) $$b || exit 1; done

# Coverage-guided, every reader in turn, SECONDS in all; READERS="trace soc": these only.
FUZZ_SAN := address,undefined,float-cast-overflow
fuzz:
	@echo 'int LLVMFuzzerTestOneInput(const char *b, long n); int LLVMFuzzerTestOneInput(const char *b, long n) { return b[0] + n == 0; }' | \
	    clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null || \
	    { echo "make fuzz needs clang with libFuzzer (Debian: clang, libclang-rt-14-dev)"; exit 1; }
	@$(MAKE) -s build/fuzz/tests/fuzz/fuzz CC=clang BUILD=build/fuzz OPT=-O1 \
	    XCFLAGS='$(ASSERTS) -fsanitize=fuzzer-no-link,$(FUZZ_SAN) -fno-sanitize-recover=all' LDFLAGS='-fsanitize=fuzzer'
	@SECONDS_IN_ALL=$(or $(SECONDS),60) sh tests/fuzz/fuzz.sh $(READERS)

$(BUILD)/tests/fuzz/fuzz $(BUILD)/tests/campaign/campaign: $(BUILD)/%: $(BUILD)/%.o $(HELP_OBJ) $(LIB)
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(LDLIBS)

# Random runs over everything, a plug-in among the policies, HOURS long, from number FIRST on.
campaign:
	@$(MAKE) -s $(BUILD)/campaign/tests/campaign/campaign BUILD=$(BUILD)/campaign XCFLAGS='$(XCFLAGS) $(ASSERTS)'
	@$(CC) -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -shared -I. -O2 -o $(BUILD)/skeleton.so \
	    policies/skeleton/skeleton.c
	@XPUSIM_PLUGIN=$(BUILD)/skeleton.so $(BUILD)/campaign/tests/campaign/campaign $(or $(HOURS),1) $(BUILD)/findings $(FIRST)

mutants:
	@python3 tests/mutants/$(if $(BLIND)$(DIFF),blind.py $(if $(BLIND),--blind $(BLIND)) $(if $(DIFF),--diff $(DIFF)) --seed $(or $(SEED),1),mutants.py) $(MUTANTS)

statistics: $(BUILD)/setup.stamp
	@BUILD=$(BUILD) CC='$(CC)' SEED=$(SEED) sh tests/statistics.sh

originals: $(BUILD)/xpusim
	@BUILD=$(BUILD) sh tests/originals/originals.sh $(MUST) openvino
	@BUILD=$(BUILD) sh tests/originals/originals.sh $(MUST) llama-server

lint:
	@sh tests/lint.sh

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

golden-update: $(BUILD)/xpusim
	@BUILD=$(BUILD) sh tests/golden/golden.sh --update
	@$(BUILD)/xpusim gate --baseline experiments/gate/policies.json --update
	@BUILD=$(BUILD) sh tests/golden/gate.sh --update
	@BUILD=$(BUILD) sh tests/golden/diff.sh --update
	@BUILD=$(BUILD) sh tests/golden/tutorial.sh --update
	@BUILD=$(BUILD) sh tests/golden/arena.sh --update

# How far predictions are off, from the shipped points: the tables of hwmodels/VALIDATION.md.
validation: $(BUILD)/xpusim
	@BUILD=$(BUILD) sh hwmodels/validation.sh >hwmodels/VALIDATION.md.tmp
	@mv hwmodels/VALIDATION.md.tmp hwmodels/VALIDATION.md

# docs/accuracy.md: errors and coverage of every class of predictions, and their change since the record.
accuracy: $(BUILD)/xpusim
	@BUILD=$(BUILD) sh hwmodels/accuracy.sh >docs/accuracy.md.tmp
	@mv docs/accuracy.md.tmp docs/accuracy.md

accuracy-record: $(BUILD)/xpusim
	@$(BUILD)/xpusim validate --points reference --accuracy --json >hwmodels/accuracy.json.tmp
	@mv hwmodels/accuracy.json.tmp hwmodels/accuracy.json
	@$(MAKE) -s accuracy

sensitivity: $(BUILD)/xpusim
	@BUILD=$(BUILD) sh experiments/sensitivity.sh >hwmodels/SENSITIVITY.md.tmp
	@mv hwmodels/SENSITIVITY.md.tmp hwmodels/SENSITIVITY.md

# docs/claims.md: every claim judged, on both machines and on the paper profile, and a search (an hour on two processors).
claims-report: $(BUILD)/xpusim
	@$(BUILD)/xpusim claims --json >$(BUILD)/claims.json
	@$(BUILD)/xpusim claims --reading stated --profile paper-125h --file experiments/claims/agent-xpu-v2.json \
	    --json >$(BUILD)/claims-paper-125h.json
	@$(BUILD)/xpusim claims --fit B6,B7,B8,B9,B10,B11,B12,B14,B15,B16 --state $(BUILD)/fit-state.json --json \
	    >$(BUILD)/fit.json
	@python3 experiments/claims/report.py $(BUILD)/claims.json $(BUILD)/claims-paper-125h.json $(BUILD)/fit.json \
	    >docs/claims.md

# docs/fits.md: which claims can hold together under the papers' kernel times (ten minutes of processor time).
fits: $(BUILD)/xpusim
	@python3 experiments/claims/fits.py run $(BUILD)/xpusim && python3 experiments/claims/fits.py page >docs/fits.md

# The simulator for a page. Optional: what is missing for it is one sentence.
wasm:
	@$(MAKE) --no-print-directory -f experiments/commands/wasm/Makefile BUILD=$(BUILD) REVISION='$(REVISION)'

# Every page as a site with search: build/docs/site (docs/site.py; needs mkdocs, docs/requirements.txt).
docs: $(BUILD)/xpusim
	@BUILD=$(BUILD) python3 docs/site.py

# What repeats the structs of sim/api: their hash, the Python classes, the page of the protocol.
generate:
	@python3 sim/record/generate.py

# The pictures of README.md, from what the demo writes.
gallery: demo
	@for f in "latency-rate load.json" "gantt --from 244 --to 264 timeline.json.gz" \
	    "causes openvino-cb-causes.json agent-xpu-v1-causes.json agent-xpu-v2-causes.json"; do \
	    (cd $(BUILD)/demo && ../xpusim plot --format svg -o $(CURDIR)/plots/gallery $$f) || exit 1; done
	@cd $(BUILD)/demo && ../xpusim explain --job 30 --policy edf --workload leader-subagents --soc core-ultra-7-258v \
	    --llm qwen3-4b:bits=4 --json -q >job.json && ../xpusim plot --format svg -o $(CURDIR)/plots/gallery job job.json
	@rm -f plots/gallery/*.tsv
	@b=$$(command -v chromium || command -v chromium-browser) && \
	    python3 tests/helpers/gallery.py $$b $(BUILD)/demo/report.html plots/gallery/live.webp || echo "make gallery: there is no chromium, so the page's picture is as it was"

# docs/figures.md: the papers' figures and tables made again, with the published values in them.
figures: $(BUILD)/xpusim
	@STORE=$(or $(STORE),$(BUILD)/figures.db) sh experiments/figures/page.sh $(BUILD)/xpusim >$(BUILD)/figures.md && \
	    mv $(BUILD)/figures.md docs/figures.md

# docs/headlines.md: the papers' headlines on both machines and on drawn ones (half an hour on two processors).
headlines: $(BUILD)/xpusim
	@experiments/claims/headlines.sh $(BUILD)/xpusim >$(BUILD)/headlines.md && mv $(BUILD)/headlines.md docs/headlines.md

# Every shipped policy on the suite: the certificate and scores as data, and the page. Goes on where it was stopped.
SUITES  := $(filter-out %-sealed %.archive,$(patsubst experiments/suites/%.json,%,$(wildcard experiments/suites/*.json)))
ARCHIVE := $(BUILD)/xpusim arena archive --store $(BUILD)/archive.db --suite
archive: $(BUILD)/xpusim
	@set -e; sed '/^<!-- archive -->/q' docs/leaderboard.md >$(BUILD)/leaderboard.md; \
	for s in $(sort $(SUITES)); do \
	    $(ARCHIVE) $$s --json >$(BUILD)/archive.json; \
	    mv $(BUILD)/archive.json experiments/suites/$$s.archive.json; \
	    { echo; echo "# $$s"; echo; $(ARCHIVE) $$s --markdown; } >>$(BUILD)/leaderboard.md; \
	done
	@mv $(BUILD)/leaderboard.md docs/leaderboard.md

install: all
	@$(MAKE) --no-print-directory install-built

# Into a folder of the prefix: files as they lie in the tree, one command a folder.
in_folder = $(strip $(foreach f,$(2),$(if $(filter $(1),$(dir $(f))),$(f))))
install_tree = $(foreach d,$(sort $(dir $(2))),install -d $(1)/$(d) && install -m 644 $(call in_folder,$(d),$(2)) $(1)/$(d) &&) true
HEADERS := $(wildcard sim/base/*.h sim/api/*.h sim/api/*.def policies/*.h policies/common/*.h)
DATA := $(wildcard hwmodels/soc/*.json hwmodels/llm/*.json hwmodels/residuals.csv hwmodels/metered.json hwmodels/shares.json hwmodels/measured/* hwmodels/runs/* \
            hwmodels/points/* hwmodels/speculation/* hwmodels/backends/*.cl traces/datasets/* traces/workloads/* traces/texts/*.jsonl traces/machine/* traces/drive/*.csv experiments/claims/*.json experiments/figures/*.json experiments/figures/*.csv experiments/specs/*.json experiments/suites/*.json experiments/arena/start/* \
            experiments/gate/*.json experiments/gate/*.csv plots/*.gp plots/page.* plots/live* policies/skeleton/* policies/python/*.* \
            policies/python/xpusim/*.* policies/python/examples/*.py)
TOP   := $(DESTDIR)$(PREFIX)
SHARE := $(TOP)/share

# What is built, as it is: another PREFIX alone would build again. What the program says of itself is written where it
# belongs, by no file in between: installing twice at once, as tests do, is safe.
install-built:
	install -d $(TOP)/bin $(SHARE)/xpusim/schemas $(SHARE)/man/man1 $(SHARE)/pkgconfig \
	    $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 755 $(BUILD)/xpusim $(TOP)/bin/xpusim
	$(if $(strip $(ENGINES)),install -d $(TOP)/lib/xpusim/engines && install -m 755 $(ENGINES) $(TOP)/lib/xpusim/engines)
	$(call install_tree,$(TOP)/include/xpusim,$(HEADERS))
	$(call install_tree,$(SHARE)/xpusim,$(DATA))
	install -m 644 $(wildcard docs/schemas/*.json) $(SHARE)/xpusim/schemas
	$(if $(wildcard $(BUILD)/xpusim.wasm),install -m 644 $(BUILD)/xpusim.wasm $(SHARE)/xpusim)
	@umask 022 && $(BUILD)/xpusim help --man >$(SHARE)/man/man1/xpusim.1 && \
	for c in $$($(BUILD)/xpusim help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do \
	    $(BUILD)/xpusim help $$c --man >$(SHARE)/man/man1/xpusim-$$c.1 || exit 1; done
	@umask 022 && $(BUILD)/xpusim help --completion bash >$(SHARE)/bash-completion/completions/xpusim
	@umask 022 && $(BUILD)/xpusim help --completion zsh >$(SHARE)/zsh/site-functions/_xpusim
	@umask 022 && $(BUILD)/xpusim help --completion fish >$(SHARE)/fish/vendor_completions.d/xpusim.fish
	@umask 022 && printf 'prefix=$${pcfiledir}/../..\nincludedir=$${prefix}/include/xpusim\n\nName: xpusim\nDescription: contract of xpusim policy plug-ins\nVersion: %s\nCflags: -I$${includedir}\n' \
	    "$$($(BUILD)/xpusim --version | cut -d' ' -f2)" >$(SHARE)/pkgconfig/xpusim.pc

# Takes back what install put there, and nothing else.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/xpusim $(DESTDIR)$(PREFIX)/share/man/man1/xpusim.1 \
	    $(DESTDIR)$(PREFIX)/share/man/man1/xpusim-*.1 $(DESTDIR)$(PREFIX)/share/pkgconfig/xpusim.pc \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/xpusim \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_xpusim \
	    $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/xpusim.fish
	rm -rf $(DESTDIR)$(PREFIX)/share/xpusim $(DESTDIR)$(PREFIX)/include/xpusim $(DESTDIR)$(PREFIX)/lib/xpusim

# A Debian package of what is committed, tried in a root of its own.
deb: $(BUILD)/setup.stamp
	@BUILD=$(BUILD) sh tests/package.sh

# A wheel for pip with program, data and Python package. Debian's static libraries are in the program, cJSON, which has
# none, is next to it; so a machine needs glibc alone.
WHEEL := $(BUILD)/wheel
WHEEL_LIBS = -Wl,-Bstatic -lgsl -lgslcblas -lsqlite3 -lcsv -lz -Wl,-Bdynamic -lcjson -lpthread -ldl -lm
wheel: $(BUILD)/xpusim
	@rm -rf $(WHEEL) && mkdir -p $(WHEEL)/prefix/lib/xpusim
	@$(MAKE) -s --no-print-directory install-built PREFIX= DESTDIR=$(WHEEL)/prefix ENGINES=
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) -s -Wl,-rpath,'$$ORIGIN/../lib/xpusim' -Wl,--dynamic-list=policies/plugin.list \
	    -o $(WHEEL)/prefix/bin/xpusim $(BUILD)/experiments/commands/main.o $(LIB) $(WHEEL_LIBS)
	@cp -L "$$(ldd $(BUILD)/xpusim | sed -n 's/.*libcjson.* => \([^ ]*\) .*/\1/p')" $(WHEEL)/prefix/lib/xpusim/libcjson.so.1
	@python3 .ci/wheel.py $(WHEEL)/prefix $(WHEEL)
	@BUILD=$(BUILD) sh tests/wheel.sh

release:
	@sh .ci/release.sh

clean:
	rm -rf build

FORCE:
.SECONDARY:
.PHONY: all tests threads tsan statistics unseen archive docs wasm generate mutants engines claims-report fits headlines figures check demo asan ubsan sanitize clang fast bench fuzz campaign lint format golden-update gallery install install-built uninstall deb wheel release clean FORCE

# What objects depend on. Goals that copy what is built need nothing of it, and reading it takes a third of a second.
ifneq ($(or $(if $(MAKECMDGOALS),,all),$(filter-out install-built uninstall,$(MAKECMDGOALS))),)
-include $(BUILD)/tests/campaign/campaign.d $(BUILD)/tests/fuzz/fuzz.d
-include $(LIB_OBJ:.o=.d) $(HELP_OBJ:.o=.d) $(CHECK_OBJ:.o=.d) $(TESTS:=.d) $(BENCHES:=.d) $(BENCH_OBJ:.o=.d) \
         $(BUILD)/experiments/commands/main.d
endif
