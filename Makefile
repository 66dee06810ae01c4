# make run | check | test | long | bench | docs          (make help lists them)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The tests start hundreds of Python processes, which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# Many tests wait mostly for a disk on which small files are made, synced and deleted. So their
# directories are in memory if it has room and may hold programs. `make long` runs them on the disk.
MEMORY = $(shell [ -w /dev/shm ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts && \
	[ "$$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}')" -gt 2000000 ] && echo TMPDIR=/dev/shm)

# Spark gives a new Python process ten seconds to import pyspark. A busy machine may take longer.
RERUN_ON_BUSY = --reruns 2 --only-rerun 'Python worker failed to connect back'

ON_SPARK = tests/pipeline tests/tools/test_pipeline_command.py \
	tests/conformance/test_spark_sink.py tests/conformance/test_spark_reads_kafkas_files.py

# What `make run` shows beside Kafka's port: the console, and a schema registry.
LOOK_INSIDE = odradek.http.listener=localhost:9080 odradek.console=true \
	odradek.registry.listener=localhost:8081

.PHONY: help run check test durations answers long bench docs clean without-libraries wheels

help:
	@echo "make run    install into .venv and start the broker on localhost:9092, data in ./data,"
	@echo "            with its console at http://localhost:9080 and a schema registry at :8081"
	@echo "make check  format, lint, types, import rules, fast tests (two minutes)"
	@echo "make test   check, then every other test at short length (12 minutes)"
	@echo "make durations  measures how long the files of tests take; the longest begin first"
	@echo "make answers  asks Apache Kafka again what tests compare odradek's answers with"
	@echo "make long   crash, model, exchange and soak tests at full length"
	@echo "make spark-4.0  the tests of the pipeline with another Spark, in .venv-spark-4.0"
	@echo "make without-libraries  the tests of the broker without what has no wheels everywhere"
	@echo "make wheels resolves the wheels for each system, into docs/compatibility/systems.md"
	@echo "make bench  odradek and Apache Kafka side by side (30 minutes)"
	@echo "make docs   the generated pages of the documentation, and the site in site/"

# Two stamps: running the broker does not install the tools for tests.
$(VENV)/.run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[fast,registry]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test,dev,docs,spark]'
	@touch $@

run: $(VENV)/.run
	$(BIN)/odradek serve server.properties $(LOOK_INSIDE:%=--override %)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(MEMORY) $(BIN)/pytest -q -n 3 -m "not slow and not java"

test: check
	$(MEMORY) $(BIN)/pytest -q -ra -n 3 --dist loadfile --durations=20 $(RERUN_ON_BUSY) \
		-m "slow or java"

# Of the tests after `check`: how long each file takes, by which they begin in `make test`.
durations: $(VENV)/.dev
	$(MEMORY) $(BIN)/pytest -q -n 3 --dist loadfile --keep-durations -m "slow or java"

# Into tests/golden/answers. A file that changes although Kafka has not is a fault of its test.
answers: $(VENV)/.dev
	ODRADEK_RECORD_ANSWERS=yes $(BIN)/pytest -q -ra -m recorded

long: $(VENV)/.dev
	ODRADEK_TEST_LENGTH=long $(BIN)/pytest -q -ra $(RERUN_ON_BUSY)

# Wheels of lz4, zstandard, google-re2 and uvloop are missing for some systems.
without-libraries: $(VENV)/.dev
	ODRADEK_TEST_LENGTH=long $(BIN)/pytest -q tests/tools/test_without_libraries.py

wheels: $(VENV)/.dev
	$(BIN)/python -m tests.wheels

spark-%:
	$(MAKE) VENV=.venv-$@ .venv-$@/.dev
	.venv-$@/bin/pip install --quiet --disable-pip-version-check 'pyspark[sql,connect]==$*.*'
	.venv-$@/bin/pytest -q -ra -n 2 --dist loadfile $(RERUN_ON_BUSY) $(ON_SPARK)

bench: $(VENV)/.dev
	$(BIN)/python -m tests.bench

docs: $(VENV)/.dev
	$(BIN)/python -m tests.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache
