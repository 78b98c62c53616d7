# Every target sets up .venv by itself: all it needs is Python 3.11+ with venv, and make. `make help` lists the targets.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
TESTS ?=
EXAMPLES ?= 1000
say = @printf '\033[1m== %s\033[0m\n'

define compile
$(say) 'Compiling the kernels (the first time a minute or two; they are kept in ~/.cache/parquet-variant)'
@$(BIN)/variant warmup
endef

# What is installed is told by stamp files: a second run starts at once, a changed pyproject.toml installs again.
BASE_STAMP := $(VENV)/.installed-base
DEV_STAMP := $(VENV)/.installed-dev
BENCH_STAMP := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

demo: $(BASE_STAMP) ## run the main job on the earthquakes in examples/, through a local Spark session
	$(compile)
	$(say) 'Demo: NDJSON in, shredded Parquet out, queried by path'
	@$(BIN)/python examples/demo.py

test: $(DEV_STAMP) ## run the tests; TESTS=tests/cli for a part of them
	$(compile)
	$(say) 'Running the tests with $(WORKERS) workers; the ones that use Spark share one session'
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(TESTS)

lint: $(DEV_STAMP) ## ruff, mypy strict, and the layers' import contracts
	$(say) 'ruff check'
	@$(BIN)/ruff check .
	$(say) 'ruff format --check'
	@$(BIN)/ruff format --check .
	$(say) 'mypy --strict'
	@$(BIN)/mypy
	$(say) 'lint-imports'
	@$(BIN)/lint-imports --no-cache

bench: $(BENCH_STAMP) ## run the benchmarks; ONLY=name for some of them
	$(say) 'Benchmarks, side by side with the peers'
	@$(BIN)/python -m benchmarks.run $(ONLY)

fuzz: $(DEV_STAMP) ## run every property test with EXAMPLES=1000 fresh examples; TESTS=tests/fuzz for a part of them
	$(compile)
	$(say) 'Property tests, $(EXAMPLES) examples each, different in every run'
	@HYPOTHESIS_PROFILE=fuzz FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m hypothesis $(TESTS)

clean: ## remove .venv and everything that the targets made
	$(say) 'Removing .venv, caches and output'
	@rm -rf $(VENV) dist demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
		spark-warehouse
	@find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE_STAMP): pyproject.toml
	@if [ -z '$(PYTHON)' ]; then echo 'Python 3.11 or newer with the venv module is needed: install it, or say make PYTHON=/path/to/python3'; exit 2; fi
	$(say) 'Making $(VENV) with $(PYTHON)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(say) 'Updating pip (dependency groups need 25.1)'
	@$(BIN)/python -m pip install --upgrade 'pip>=25.1'
	$(say) 'Installing parquet-variant with Spark and the command line (PySpark is 450 MB: this takes a while)'
	@$(BIN)/python -m pip install --editable '.[spark,cli]'
	$(say) 'Looking for Java 17+'
	@$(BIN)/python -c 'from parquet_variant.spark.java import find_java; print(find_java().java)' 2>/dev/null || { \
		printf '%s\n' 'none here: installing the jdk extra'; \
		$(BIN)/python -m pip install --editable '.[jdk]'; }
	@touch $@

$(DEV_STAMP): $(BASE_STAMP)
	$(say) 'Installing what the tests and checks need'
	@$(BIN)/python -m pip install --editable '.[spark,cli,delta,sql,vortex]' --group dev
	@touch $@

$(BENCH_STAMP): $(DEV_STAMP)
	$(say) 'Installing the peers that the benchmarks measure'
	@$(BIN)/python -m pip install --group bench
	$(say) 'Installing PySail in an environment of its own: its PySpark is older'
	@$(BIN)/python -m venv $(VENV)/sail
	@$(VENV)/sail/bin/python -m pip install --disable-pip-version-check 'pysail==0.7.*' pyspark-client==4.2.0 'pandas<3'
	@touch $@
