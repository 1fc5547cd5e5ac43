# Development tasks; `make` lists them. Everything is installed into .venv, once, and again only
# when something it was made from has changed.

PYTHON ?= python3
PYTEST_WORKERS ?= 2
JOBS ?= 2
RUNS ?= 1000000

VENV := .venv
PEERS := build/peers
FUZZING := build/fuzzing
SITE := build/docs
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
NATIVE := CMakeLists.txt $(shell find cpp -type f)
CPP_SOURCES = find cpp tests/cpp -name '*.cpp' -o -name '*.hpp'

# cmake and ninja may come from the environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DELETE_ON_ERROR:
.PHONY: help demo test test-python test-cpp lint format stubs docs bench reproduce clean \
        sanitize-address sanitize-thread fuzz soak

help:
	@echo 'make demo       train and compare recommenders on a small data set'
	@echo 'make test       lint, then the Python and the C++ tests'
	@echo 'make lint       ruff, mypy, import-linter and clang-format, changing nothing'
	@echo 'make format     write Python and C++ in the project'"'"'s format'
	@echo 'make stubs      generate the type stubs of the native core'
	@echo 'make docs       build the documentation into build/site; warnings are errors'
	@echo 'make bench      run a benchmark: NAME=cpu, demo, evaluation, gpu, memory, parquet, readme, serving, solvers, synthetic'
	@echo 'make reproduce  run experiments of the paper: NAME=table-1 ARGS="--seeds 1"; ARGS=--list'
	@echo 'make sanitize-address, sanitize-thread  run the C++ and the core of the Python tests with a sanitizer'
	@echo 'make fuzz       fuzz the native entries (with Clang) and the parsers (with Atheris): RUNS=1000000 of each'
	@echo 'make soak       attack the promises for hours, then fuzz and sanitize: NAME=damaged-models ARGS="--cases 100"'
	@echo 'make clean      remove .venv and everything that was built'

demo: $(VENV)/.installed
	@$(BIN)/safecf demo

test: lint test-python test-cpp

test-python: $(VENV)/.installed
	@echo 'pytest'
	@$(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --dist loadfile

test-cpp: $(VENV)/.tools
	@echo 'ctest'
	@cmake -S tests/cpp -B build/cpp-tests > /dev/null
	@unset MAKELEVEL MAKEFLAGS; cmake --build build/cpp-tests -j$(JOBS)
	@ctest --test-dir build/cpp-tests --output-on-failure

# The native core with a sanitizer, in its own tests and under the part of the Python tests that
# reaches it. Python itself is not built with one and frees little at its end, so that leaks are
# looked for in the C++ tests alone. Forks of a process with threads hang in sanitizers, and are left
# out; so is, for that of threads, the test whose point is a data race. OpenBLAS has one thread
# there, as it hides how it locks.
SANITIZED_TESTS := tests/agreement tests/backends tests/als tests/contract/test_recommend.py
sanitizer = $(shell $(CXX) -print-file-name=lib$(1).so)
sanitizer_environment_address := LD_PRELOAD="$(call sanitizer,asan) $(call sanitizer,ubsan) $(call sanitizer,stdc++)" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
  PYTEST_ADDOPTS='-k "not fork"'
sanitizer_environment_thread := LD_PRELOAD="$(call sanitizer,tsan) $(call sanitizer,stdc++)" \
  TSAN_OPTIONS=halt_on_error=1:suppressions=$(CURDIR)/tests/sanitized/thread.txt \
  OPENBLAS_NUM_THREADS=1 PYTEST_ADDOPTS='-k "not change_during_the_call and not fork"'

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

fuzz: $(FUZZING)/.installed $(VENV)/.tools
	@tests/cpp/fuzz/build.sh $(JOBS)
	@$(FUZZING)/bin/python -m soak.fuzzing --runs $(RUNS) --jobs $(JOBS) $(ARGS)

soak: $(VENV)/.installed
	@$(BIN)/python -m soak $(NAME) $(ARGS)
ifeq ($(NAME),)
	@$(MAKE) --no-print-directory ARGS= fuzz sanitize-address sanitize-thread
endif

lint: $(VENV)/.installed
	@echo 'ruff, mypy, import-linter, clang-format'
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@PYTHONPATH=src:. $(BIN)/lint-imports --no-logo --no-cache > $(VENV)/imports.log || (cat $(VENV)/imports.log; exit 1)
	@$(CPP_SOURCES) | xargs -r $(BIN)/clang-format --dry-run -Werror

format: $(VENV)/.tools
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .
	@$(CPP_SOURCES) | xargs -r $(BIN)/clang-format -i

stubs: $(VENV)/.installed
	@$(BIN)/python -m nanobind.stubgen -q -m safecf._core -o src/safecf/_core.pyi

docs: $(SITE)/.installed
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --quiet
	@echo 'build/site/index.html; with a search: python -m http.server -d build/site'

bench: $(PEERS)/.installed
	@$(PEERS)/bin/python -m benchmarks $(NAME)

reproduce: $(VENV)/.installed
	@$(BIN)/python -m reproduction $(NAME) $(ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# The build requirements are read from pyproject.toml, so that they stand in one place.
$(VENV)/.tools: pyproject.toml constraints.txt
	@echo 'making $(VENV) with the development tools'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(VENV)/build-requirements.txt
	@command -v cmake > /dev/null || echo cmake >> $(VENV)/build-requirements.txt
	@command -v ninja > /dev/null || echo ninja >> $(VENV)/build-requirements.txt
	@$(PIP) install -c constraints.txt -r $(VENV)/build-requirements.txt --group dev
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(NATIVE)
	@echo 'building and installing safecf'
	@$(PIP) install --no-build-isolation -c constraints.txt -e .
	@touch $@

# The peers' environment: they must not get into the way of the project's own.
$(PEERS)/.installed: benchmarks/requirements.txt pyproject.toml $(NATIVE) $(shell find src -name '*.py')
	@echo 'making $(PEERS) with safecf and its peers'
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt -r benchmarks/requirements.txt .
	@touch $@

# The site is made from the sources alone: nothing is built for it.
$(SITE)/.installed: pyproject.toml
	@echo 'making $(SITE) with the tools of the documentation'
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python -m pip --disable-pip-version-check -qq install --upgrade 'pip>=25.1'
	@$(SITE)/bin/python -m pip --disable-pip-version-check -qq install --group docs
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
