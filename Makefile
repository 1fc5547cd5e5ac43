# Development tasks; `make` lists them. Everything is installed into .venv, once, and again only
# when something it was made from has changed: what `make demo` needs, then the development tools.

PYTHON ?= python3
# The stable ABI begins with 3.12: its wheel serves later versions as well.
WHEEL_PYTHON ?= $(shell python3.12 -c 'print("python3.12")' 2> /dev/null || echo $(PYTHON))
PYTEST_WORKERS ?= 2
JOBS ?= 2
RUNS ?= 1000000
# Of `make check`: what every change may break; of the native core one instruction set.
TESTS ?= tests/contract tests/als tests/measures tests/agreement -k "not torch and not avx and not amx and not neon"

comma := ,
VENV := .venv
PEERS := build/peers
FUZZING := build/fuzzing
SITE := build/docs
RELEASE := build/release-with-$(subst /,-,$(WHEEL_PYTHON))
SMOKE := build/smoke
MUTANTS := build/mutants
BIN := $(VENV)/bin
BUILT := $(VENV)/.built$(if $(WHEEL),-wheel)
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
NATIVE := CMakeLists.txt $(shell find cpp -type f)
CPP_SOURCES = find cpp tests/cpp -name '*.cpp' -o -name '*.hpp'

# cmake and ninja may come from the environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DELETE_ON_ERROR:
.NOTPARALLEL: # two installations into one environment would get into each other's way
.PHONY: help demo check test test-slow test-python test-cpp lint format stubs bench reproduce mutate \
        docs wheel wheel-test wheels release-check clean sanitize-address sanitize-thread fuzz soak

help:
	@awk -F ':.*## ' '/^[a-z-].*:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(BUILT) ## train and compare recommenders on a small data set
	@$(BIN)/safecf demo
	@echo 'commands are found after: . $(BIN)/activate'

RUN_TESTS = $(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder

# mypy keeps what it knows, so that only its first run takes long.
check: lint ## for every save: lint, and the tests of what is shared; TESTS=tests/serving for others
	@echo 'pytest $(TESTS)'
	@$(RUN_TESTS) -m 'not slow' $(TESTS)

test: lint test-python test-cpp ## for every commit: lint, then the Python and the C++ tests; WHEEL=FILE tests a wheel

test-python: $(VENV)/.installed ## the Python tests, without those that are marked slow
	@echo 'pytest'
	@$(RUN_TESTS) -m 'not slow' --durations 10

# Spark Connect, clusters and faults, Triton's interpreter, real data, many examples.
test-slow: $(VENV)/.installed ## before a release: the tests that are marked slow, and those of shared promises with 20 times as many examples
	@echo 'pytest, slow'
	@$(RUN_TESTS) -m slow --durations 20
	@SAFECF_PROFILE=many $(RUN_TESTS) -m 'not slow' tests/contract tests/models tests/agreement

test-cpp: $(VENV)/.tools ## the C++ tests
	@echo 'ctest'
	@cmake -S tests/cpp -B build/cpp-tests > /dev/null
	@unset MAKELEVEL MAKEFLAGS; cmake --build build/cpp-tests -j$(JOBS)
	@ctest --test-dir build/cpp-tests --output-on-failure

# The native core with a sanitizer, in its own tests and under the part of the Python tests that
# reaches it. Python itself is not built with one and frees little at its end, so that leaks are
# looked for in the C++ tests alone. Forks of a process with threads hang in sanitizers, and are left
# out; so is, for that of threads, the test whose point is a data race. OpenBLAS has one thread
# there, as it hides how it locks.
SANITIZED_TESTS := tests/agreement tests/backends tests/als tests/contract/test_answers.py tests/contract/test_similar.py tests/contract/test_partial_fits.py
sanitizer = $(shell $(CXX) -print-file-name=lib$(1).so)
sanitizer_environment_address := LD_PRELOAD="$(call sanitizer,asan) $(call sanitizer,ubsan) $(call sanitizer,stdc++)" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
  PYTEST_ADDOPTS='-k "not fork"'
sanitizer_environment_thread := LD_PRELOAD="$(call sanitizer,tsan) $(call sanitizer,stdc++)" \
  TSAN_OPTIONS=halt_on_error=1:suppressions=$(CURDIR)/tests/sanitized/thread.txt \
  OPENBLAS_NUM_THREADS=1 PYTEST_ADDOPTS='-k "not change_during_the_call and not fork"'

sanitize-address: ## the C++ and the core of the Python tests with the sanitizers of memory and undefined behaviour
sanitize-thread: ## the same with the sanitizer of threads
sanitize-address sanitize-thread: sanitize-%: $(VENV)/.installed
	@echo 'building with the $* sanitizer'
	@cmake -S tests/cpp -B build/$@/cpp -DSAFECF_SANITIZE=$* > /dev/null
	@cmake -S . -B build/$@/python -DSAFECF_SANITIZE=$* -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python > /dev/null
	@unset MAKELEVEL MAKEFLAGS; cmake --build build/$@/cpp -j$(JOBS) > build/$@/build.log
	@unset MAKELEVEL MAKEFLAGS; cmake --build build/$@/python -j$(JOBS) >> build/$@/build.log
	@ctest --test-dir build/$@/cpp --output-on-failure
	@$(sanitizer_environment_$*) SAFECF_CORE=$(CURDIR)/build/$@/python PYTHONPATH=tests/sanitized \
	  $(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) $(SANITIZED_TESTS)

fuzz: $(FUZZING)/.installed $(VENV)/.tools ## fuzz the native entries (with Clang) and the parsers (with Atheris): RUNS=1000000 of each
	@tests/cpp/fuzz/build.sh $(JOBS)
	@$(FUZZING)/bin/python -m soak.fuzzing --runs $(RUNS) --jobs $(JOBS) $(ARGS)

soak: $(VENV)/.installed ## attack the promises for hours, then fuzz and sanitize: NAME=damaged-models ARGS="--cases 100"
	@$(BIN)/python -m soak $(NAME) $(ARGS)
ifeq ($(NAME),)
	@$(MAKE) --no-print-directory ARGS= fuzz sanitize-address sanitize-thread
endif

lint: $(VENV)/.installed ## ruff, mypy, import-linter and clang-format, changing nothing
	@echo 'ruff, mypy, import-linter, clang-format'
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@PYTHONPATH=src:. $(BIN)/lint-imports --no-logo --no-cache > $(VENV)/imports.log || (cat $(VENV)/imports.log; exit 1)
	@$(CPP_SOURCES) | xargs -r $(BIN)/clang-format --dry-run -Werror

format: $(VENV)/.tools ## write Python and C++ in the project's format
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .
	@$(CPP_SOURCES) | xargs -r $(BIN)/clang-format -i

stubs: $(VENV)/.installed ## generate the type stubs of the native core
	@$(BIN)/python -m nanobind.stubgen -q -m safecf._core -o src/safecf/_core.pyi

docs: $(SITE)/.installed ## build the documentation's site into build/site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --quiet --strict
	@echo 'build/site/index.html; with a search: python -m http.server -d build/site'

bench: $(PEERS)/.installed ## run a benchmark: NAME=cpu; NAME=--help lists them
	@$(PEERS)/bin/python -m benchmarks $(NAME) $(ARGS)

# A copy of the library with a switch for every mutant; build/mutants/mutants.jsonl lists what they change.
MUTATED := -m 'not slow' $(addprefix --ignore tests/,docs soak spark reproduction test_benchmarks.py)
mutate: $(VENV)/.installed $(MUTANTS)/.installed ## which changes of the code no test notices, in hours: ARGS="--only data"
	@$(MUTANTS)/tools/bin/python -m tests.mutants.source $(MUTANTS) --beside $(VENV) $(ARGS)
	@$(MUTANTS)/venv/bin/python -m tests.mutants.run $(MUTANTS) cover $(MUTATED)
	@for part in 0 1; do $(MUTANTS)/venv/bin/python -m tests.mutants.run $(MUTANTS) kill --part $$part/2 $(MUTATED) & done; wait
	@$(MUTANTS)/venv/bin/python -m tests.mutants.run $(MUTANTS) table

reproduce: $(VENV)/.installed ## run experiments of the paper: NAME=table-1 ARGS="--seeds 1"; ARGS=--list
	@$(BIN)/python -m reproduction $(NAME) $(ARGS)

# Whether wheels with the stable ABI keep to it; that of Python 3.11 has none.
audit_abi = if ls dist/*-abi3-*.whl > /dev/null 2>&1; then $(RELEASE)/bin/abi3audit --strict dist/*-abi3-*.whl; fi

# The wheel is built from the sdist, in an environment of its own. On Linux, auditwheel names the
# oldest systems that it runs on.
wheel: $(RELEASE)/.installed ## build the sdist and this system's wheel into dist/
	@echo 'building dist/'
	@rm -rf dist build/raw
	@mkdir -p dist
	@$(RELEASE)/bin/python -m build --outdir build/raw . > $(RELEASE)/build.log 2>&1 || (cat $(RELEASE)/build.log; exit 1)
	@mv build/raw/*.tar.gz dist
ifeq ($(shell uname),Linux)
	@PATH=$(CURDIR)/$(RELEASE)/bin:$$PATH auditwheel repair --wheel-dir dist build/raw/*.whl 2> $(RELEASE)/audit.log || (cat $(RELEASE)/audit.log; exit 1)
else
	@mv build/raw/*.whl dist
endif
	@$(RELEASE)/bin/twine --no-color check --strict dist/*
	@$(audit_abi)

# Nothing but the environment is on PATH: no compiler, no tools of the checkout.
wheel-test: $(if $(WHEEL),,wheel) ## install the wheel where there is no compiler, and run safecf demo and doctor
	@rm -rf $(SMOKE)
	@$(RELEASE)/bin/python -m venv $(SMOKE)
	@PATH=$(CURDIR)/$(SMOKE)/bin $(SMOKE)/bin/python -m pip --disable-pip-version-check -qq install --only-binary :all: $(or $(WHEEL),dist/*.whl)
	@PATH=$(CURDIR)/$(SMOKE)/bin $(SMOKE)/bin/python tests/smoke.py $(or $(WHEEL),dist/*.whl)

wheels: $(RELEASE)/.installed ## the wheels of a release for this system by cibuildwheel (on Linux with Docker)
	@$(RELEASE)/bin/cibuildwheel --output-dir dist .
	@$(audit_abi)

# A package index shows the README alone: its links have to be absolute there.
release-check: wheel ## whether the wheel in dist/ may be published: links of its README, addresses of the project
	@rm -rf build/unpacked
	@$(RELEASE)/bin/python -m zipfile -e dist/*.whl build/unpacked
	@if grep -nE '\]\((docs/|[A-Z]+)' build/unpacked/*.dist-info/METADATA; then echo 'relative links in the README of the wheel: see docs/releasing.md, "The address"'; exit 1; fi
	@grep -q '^Project-URL' build/unpacked/*.dist-info/METADATA || (echo 'no [project.urls] in pyproject.toml: see docs/releasing.md, "The address"'; exit 1)

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# The build requirements are read from pyproject.toml, so that they stand in one place.
$(VENV)/.build-tools: pyproject.toml constraints.txt
	@echo 'making $(VENV)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(VENV)/build-requirements.txt
	@command -v cmake > /dev/null || echo cmake >> $(VENV)/build-requirements.txt
	@command -v ninja > /dev/null || echo ninja >> $(VENV)/build-requirements.txt
	@$(PIP) install -c constraints.txt -r $(VENV)/build-requirements.txt
	@touch $@

# With the service, which the demo's last line starts. The sources in place, or a wheel that is given;
# the one replaces the other.
$(BUILT): $(VENV)/.build-tools $(or $(WHEEL),$(NATIVE))
	@rm -f $(VENV)/.built*
ifeq ($(WHEEL),)
	@echo 'building and installing safecf'
	@$(PIP) install --no-build-isolation -c constraints.txt -e '.[serve]'
else
	@echo 'installing $(WHEEL)'
	@$(PIP) install --force-reinstall --no-deps '$(WHEEL)'
	@$(PIP) install -c constraints.txt '$(WHEEL)[serve]'
endif
	@touch $@

$(VENV)/.tools: $(VENV)/.build-tools
	@echo 'installing the development tools'
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install -c constraints.txt --group dev
	@touch $@

$(VENV)/.installed: $(BUILT) $(VENV)/.tools
	@touch $@

# The peers' environment: they must not get into the way of the project's own.
$(PEERS)/.installed: benchmarks/requirements.txt pyproject.toml $(NATIVE) $(shell find src -name '*.py')
	@echo 'making $(PEERS) with safecf and its peers'
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt -r benchmarks/requirements.txt .
	@touch $@

# The operators of mutmut, and what writes the copy.
$(MUTANTS)/.installed: pyproject.toml
	@echo 'making $(MUTANTS) with mutmut'
	@$(PYTHON) -m venv $(MUTANTS)/tools
	@$(MUTANTS)/tools/bin/python -m pip --disable-pip-version-check -qq install --upgrade 'pip>=25.1'
	@$(MUTANTS)/tools/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt --group mutants
	@touch $@

# The site is made from the sources alone: nothing is built for it.
$(SITE)/.installed: pyproject.toml
	@echo 'making $(SITE) with the tools of the documentation'
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python -m pip --disable-pip-version-check -qq install --upgrade 'pip>=25.1'
	@$(SITE)/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt --group docs
	@touch $@

# What makes and checks a release.
$(RELEASE)/.installed: pyproject.toml
	@echo 'making $(RELEASE) with the tools of a release'
	@$(WHEEL_PYTHON) -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip --disable-pip-version-check -qq install --upgrade 'pip>=25.1'
	@$(RELEASE)/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt --group release
	@touch $@

# Atheris counts the branches of modules that are installed as users install them, not of an
# editable installation.
$(FUZZING)/.installed: pyproject.toml $(NATIVE) $(shell find src -name '*.py')
	@echo 'making $(FUZZING) with safecf and Atheris'
	@$(PYTHON) -m venv $(FUZZING)
	@$(FUZZING)/bin/python -m pip --disable-pip-version-check -qq install --upgrade 'pip>=25.1'
	@$(FUZZING)/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt .
	@$(FUZZING)/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt --group fuzz || \
	  echo 'there is no Atheris for this Python'
	@touch $@
