# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install

.PHONY: demo test soak lint bench figures clean

demo: $(VENV)/.demo
	@$(BIN)/tensortide demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

# the long versions of tests of which a sample runs with `make test`
soak: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m soak

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check -q src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

figures: $(VENV)/.dev
	$(BIN)/tensortide reproduce all -o reproduced --document docs/experiments.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@echo "Setting up (once) ..."
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	@echo "Setting up for development (once) ..."
	@$(PIP) -e ".[dev]"
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: $(VENV)/.dev
	@$(PIP) -e ".[dev,bench]"
	@touch $@
