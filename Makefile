# Meson and Ninja do the building; this file gives the common tasks short names. `make help`
# lists them.

PREFIX  ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 30
SOAK_KILLS   ?= 200
SOAK_JOBS    ?= 100000
SOAK_OPS     ?= 1000000
JOBS    ?=
LISTEN  ?= 127.0.0.1:7340

B      := build
RELEASE = $(B)/release
SAN     = $(B)/test
TSAN    = $(B)/tsan
FUZZ    = $(B)/fuzz
NINJA   = ninja $(if $(JOBS),-j $(JOBS)) -C

.DEFAULT_GOAL := all
.PHONY: all run test test-all $(SAN)/all tsan bench soak campaign fuzz install check-install docs dist deb test-packages clean help

all: $(RELEASE)/build.ninja     ## build the library and the program (build/release)
	@$(NINJA) $(RELEASE)

run: $(RELEASE)/build.ninja     ## install what is missing, build, serve a page with jobs flowing
	@$(NINJA) $(RELEASE) src/cli/weir
	@$(RELEASE)/src/cli/weir serve --demo --listen $(LISTEN)

test: $(SAN)/all        ## install what is missing, build with sanitizers, run the tests
	@scripts/run-tests.sh $(SAN) --no-suite slow

test-all: $(SAN)/all    ## the same, with those that take long
	@scripts/run-tests.sh $(SAN)

$(SAN)/all:
	@scripts/setup.sh build test
	@$(MAKE) --no-print-directory $(SAN)/build.ninja
	@$(NINJA) $(SAN)

tsan:           ## the threaded tests under the thread sanitizer
	@scripts/setup.sh build test
	@$(MAKE) --no-print-directory $(TSAN)/build.ninja
	@$(NINJA) $(TSAN)
	@scripts/run-tests.sh $(TSAN) --suite unit --suite examples --suite fault --suite redis \
	    --suite server --suite e2e

bench: all      ## measure; one line a measure, and build/bench.json
	@scripts/setup.sh bench
	@$(RELEASE)/bench/bench $(BENCH_ARGS) --json $(B)/bench.json

soak: all       ## the long forms: kill -9, a bad line to Redis, random operations; new seeds
	@scripts/setup.sh build test
	@$(RELEASE)/test/ledger --kills $(SOAK_KILLS) --jobs $(SOAK_JOBS) $(SOAK_ARGS)
	@$(RELEASE)/test/ledger --kills $(SOAK_KILLS) --jobs $(SOAK_JOBS) --share $(SOAK_ARGS)
	@$(RELEASE)/test/ledger --kills $(SOAK_KILLS) --jobs $(SOAK_JOBS) --store rig:redis+unix
	@$(MAKE) --no-print-directory $(SAN)/build.ninja
	@$(NINJA) $(SAN) test/test_random test/test_cuts
	@WEIR_TEST_SEED=$$(date +%s) $(SAN)/test/test_cuts
	@$(SAN)/test/test_random --ops $(SOAK_OPS)

campaign: all ## faults on purpose in every store, one table (CAMPAIGN_ARGS="--long 8")
	@scripts/setup.sh build test
	@$(RELEASE)/test/campaign $(CAMPAIGN_ARGS)

fuzz:           ## run each fuzz target for FUZZ_SECONDS
	@scripts/setup.sh build fuzz
	@$(MAKE) --no-print-directory $(FUZZ)/build.ninja
	@$(NINJA) $(FUZZ)
	@scripts/run-fuzz.sh $(FUZZ) $(FUZZ_SECONDS)

install: all    ## install under PREFIX (and DESTDIR)
	@meson configure $(RELEASE) -Dprefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install --quiet -C $(RELEASE)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

check-install: all      ## install into a temporary place and build a program against it
	@scripts/check-install.sh

docs: all       ## the documentation as a site that works from files, in build/docs
	@scripts/setup.sh docs
	@scripts/make-site.py $(RELEASE)/src/cli/weir $(RELEASE)/docs $(B)/docs

dist: all       ## the release tarball of the last commit, with the page built, in build/dist
	@scripts/setup.sh dist
	@scripts/check-abi.sh $(RELEASE)/src/libweir.so.0
	@scripts/make-dist.sh $(B)/dist

deb:            ## Debian packages of the last commit, in build/deb
	@scripts/setup.sh build deb
	@scripts/make-deb.sh $(B)/deb

test-packages:  ## build, install, run and purge the packages in fresh Debian roots (as root)
	@scripts/setup.sh build dist deb packages
	@scripts/test-packages.sh

clean:          ## remove what was built
	rm -rf $(B)

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24

$(RELEASE)/build.ninja:
	@scripts/setup.sh build
	@meson setup $(RELEASE) --prefix=$(PREFIX) --libdir=lib -Dbuildtype=debugoptimized \
	    -Db_ndebug=true -Dtests=false >/dev/null || { cat $(RELEASE)/meson-logs/meson-log.txt; exit 1; }

$(SAN)/build.ninja:
	@meson setup $(SAN) -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
	    >/dev/null || { cat $(SAN)/meson-logs/meson-log.txt; exit 1; }

$(TSAN)/build.ninja:
	@meson setup $(TSAN) -Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false \
	    >/dev/null || { cat $(TSAN)/meson-logs/meson-log.txt; exit 1; }

$(FUZZ)/build.ninja:
	@CC=clang meson setup $(FUZZ) -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
	    -Db_lundef=false -Dfuzz=true -Dtests=false -Dexamples=false -Dbench=false \
	    >/dev/null || { cat $(FUZZ)/meson-logs/meson-log.txt; exit 1; }
