# All that a newcomer needs: `make demo` and `make test`. Each makes its own environment in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Each worker starts with one half of the tests, so that what a file of tests shares is made once.
TWO_WORKERS := -n 2 --dist worksteal
# Two workers use both cores, and threads of polars would only wait for each other. pytest compiles
# test modules once, unless PYTHONDONTWRITEBYTECODE is set: then each worker would, every time.
TEST_ENVIRONMENT := POLARS_MAX_THREADS=1 PYTHONDONTWRITEBYTECODE=
# Tests and pages start hundreds of commands. Where PYTHONDONTWRITEBYTECODE is set, each would compile.
COMPILE := $(BIN)/python -m compileall -q src
.DEFAULT_GOAL := help

.PHONY: help demo studio pictures test quick check lint types test-types doctests format docs dist bench \
        coverage clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.user: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[evaluate]'
	@touch $@

.venv/.studio: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[studio]'
	@touch $@ .venv/.user

.venv/.dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(COMPILE)
	@touch $@ .venv/.user .venv/.studio

.venv/.docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(COMPILE)
	@touch $@ .venv/.user

demo: .venv/.user  ## synthesize and evaluate the embedded table
	@rm -rf demo demo.internal
	@$(BIN)/deniable demo --out demo

studio: .venv/.studio  ## open the studio on a copy of the embedded table
	@mkdir -p studio-demo && cp -n src/deniable/demo/census.csv.gz studio-demo/ || true
	@$(BIN)/deniable studio studio-demo/census.csv.gz

pictures: .venv/.dev  ## take the pictures of docs/studio.md, in a browser
	DENIABLE_PICTURES=docs/img $(BIN)/python -m pytest --quiet tests/browser -k embedded

test: .venv/.dev  ## run all tests
	$(TEST_ENVIRONMENT) $(BIN)/python -m pytest $(TWO_WORKERS) -m "not spark" $(TEST_ARGS)
	$(BIN)/python -m pytest -m spark tests/counting/spark

quick: .venv/.dev  ## run the unit tests that matter while editing, in about a minute
	$(TEST_ENVIRONMENT) $(BIN)/python -m pytest $(TWO_WORKERS) --quiet -m "not slow and not shared and not spark"

check: lint types test-types doctests  ## format, lint, types, doctests, shape

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/.dev
	$(BIN)/mypy

test-types: .venv/.dev
	$(BIN)/mypy --config-file tests/mypy.ini tests

doctests: .venv/.dev
	$(BIN)/python -m pytest --quiet --doctest-modules src tests/test_shape.py

format: .venv/.dev  ## reformat the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/.docs  ## build the documentation site in docs/_build/html; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	$(BIN)/python tools/check_site.py docs/_build/html

dist: .venv/.dev  ## build wheel and sdist; install and run them with each of PYTHONS, in clean environments
	$(BIN)/python tools/check_wheel.py $(PYTHONS)

coverage: TEST_ARGS := --cov --cov-report=json:.coverage.json
coverage: test  ## all tests, with branch coverage; fails below the recorded share of a package
	$(BIN)/python tools/check_coverage.py .coverage.json

# The large table of end_to_end.py, growth.py and memory.py take longer and are run by name.
# All are run, then the target fails if one did.
BENCHMARKS := guard.py waiting.py "end_to_end.py --sizes small" speed.py scan.py
bench: .venv/.dev  ## limits on speed, then speed, as ratios measured in one run
	@status=0; for each in $(BENCHMARKS); do $(BIN)/python benchmarks/$$each || status=1; done; exit $$status

clean:  ## remove the environment and everything that was made
	rm -rf .venv demo demo.internal .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* docs/_build
