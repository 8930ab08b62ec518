# `make demo` and `make test` set themselves up: a virtual environment in .venv, filled once and again whenever
# pyproject.toml changes. PYTHON=python3.12 chooses another interpreter.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip -qq --disable-pip-version-check
PYTEST  := $(BIN)/python -P -m pytest
JOBS    ?= 2
# What holds engines to the oracle, once more with arrays that are full at once (tests/small.py).
GROWING := tests/test_differential.py tests/test_registers.py tests/test_next_match.py tests/test_timeouts.py \
           tests/test_skipping.py tests/test_corpus.py

# Spark's workers must run the Python that everything is installed in.
export PYSPARK_PYTHON := $(abspath $(BIN)/python)

.DEFAULT_GOAL := help
.PHONY: help demo test lint check format exhaustive mutants bench kills soak wheel docs clean java

help:
	@echo "make demo        delayed flights that delayed the next one, on Spark"
	@echo "make test        all tests but the exhaustive ones"
	@echo "make lint        style and types"
	@echo "make check       the same, and the tests that need no JVM"
	@echo "make format      rewrite the sources in the house style"
	@echo "make exhaustive  all small formulas on all small streams (long)"
	@echo "make mutants     one operator changed at a time: do the tests see it? SEED=1 NUMBER=20"
	@echo "make bench       measurements"
	@echo "make wheel       dist/cersql-….whl, and a query with it, sent to a cluster that has no cersql"
	@echo "make docs        the pages of docs/ as a site, in site/"
	@echo "make kills       streams killed -9 at random moments: the sink is the batch's. NUMBER=100 SEED=1"
	@echo "make soak        a stream with many live rows: bounded state, memory, time. MINUTES=30 LIVE=1000000"
	@echo "make clean       remove what the other targets made"

demo: java $(VENV)/.installed
	@$(BIN)/cersql demo

test: java $(VENV)/spark.jsa
	$(PYTEST) -m "not exhaustive" -n $(JOBS) --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint
	$(PYTEST) -m "not jvm and not exhaustive and not slow" -n $(JOBS) -q

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

exhaustive: java $(VENV)/spark.jsa
	$(PYTEST) -m exhaustive -n $(JOBS)
	CERSQL_SMALL=1 $(PYTEST) -m "not jvm" -n $(JOBS) $(GROWING)
	$(BIN)/python tests/bench/kills.py 10

mutants: $(VENV)/.installed-dev
	$(BIN)/python tests/mutants.py --seed $(or $(SEED),1) --number $(or $(NUMBER),20)

bench: java $(VENV)/.installed-dev
	$(BIN)/python tests/bench/run.py
	$(BIN)/python tests/bench/streaming.py
	$(BIN)/python tests/bench/scan.py

kills: java $(VENV)/.installed-dev
	$(BIN)/python tests/bench/kills.py $(or $(NUMBER),100) --seed $(or $(SEED),1)

soak: java $(VENV)/.installed-dev
	$(BIN)/python tests/bench/soak.py $(or $(MINUTES),30) --live $(or $(LIVE),1000000)

wheel: java $(VENV)/.installed-dev
	$(BIN)/python -m pip -q --disable-pip-version-check wheel . --no-deps --no-build-isolation -w dist
	$(PYTEST) tests/spark_ext/test_shipping.py -q

# Warnings are errors, such as a link that leads nowhere.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -P -m mkdocs build --strict --quiet
	@echo "Open site/index.html"

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .bench
	rm -rf spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cersql needs Python 3.11 or newer; choose one with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "No virtual environment could be made (on Debian: apt-get install python3-venv)." >&2; exit 1; }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "Installing cersql into $(VENV) (once) ..."
	@$(PIP) install -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "Installing cersql and its development tools into $(VENV) (once) ..."
	@$(PIP) install -e ".[dev]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	@echo "Installing cersql and what builds its site into $(VENV) (once) ..."
	@$(PIP) install -e ".[docs]"
	@touch $@ $(VENV)/.installed

# The classes of Spark as the JVMs of the tests map them: without it the tests are the same, and take longer.
$(VENV)/spark.jsa: $(VENV)/.installed-dev
	@echo "Writing Spark's classes into an archive (once) ..."
	@rm -f $@
	@$(BIN)/python tests/jvm_archive.py $@ > /dev/null 2>&1 || true

# Spark 4 runs on Java 17 or newer.
java:
	@java=java; [ -z "$$JAVA_HOME" ] || java="$$JAVA_HOME/bin/java"; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1); \
	if [ -z "$$version" ]; then \
	  echo "Spark needs Java 17 or newer, and no java was found on PATH or in JAVA_HOME." >&2; \
	  echo "On Debian: apt-get install openjdk-17-jre-headless" >&2; exit 1; \
	elif [ "$$version" -lt 17 ]; then \
	  echo "Spark needs Java 17 or newer; $$java is version $$version. Set JAVA_HOME to a newer one." >&2; exit 1; \
	fi
