# `make` alone lists what can be made; every target says it in its "##" comment.
.DEFAULT_GOAL := help
.PHONY: help install demo test quick lint types rust-test bench bench-full docs docs-check clean

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3.11
EXTRAS := spark,dev
# Two jobs of the heavy tests at a time would be slower than one on small machines; nothing here runs in parallel.
PYTEST := $(BIN)/python -m pytest

RUST_SOURCES := $(shell find rust -name '*.rs' -not -path '*/target/*') $(wildcard rust/*/Cargo.toml) Cargo.toml Cargo.lock

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 14

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

# Dependencies and the core, built in release mode. It is an editable install: Python files need no reinstall.
$(VENV)/.installed: $(VENV)/.created pyproject.toml $(RUST_SOURCES)
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

install: $(VENV)/.installed ## create .venv and install the package with its extras spark and dev (incremental)

demo: install ## run the Spark pipeline over real astronomical alerts and show what came of it
	$(BIN)/sardonyx demo

test: install lint types rust-test ## everything: lint, types, Rust tests, all Python tests (about 20 minutes the first time, half of it building)
	$(PYTEST)

quick: install ## the Python tests without Spark and without the long ones (under 3 minutes)
	$(PYTEST) -m 'not spark and not slow' --hypothesis-profile quick

lint: install ## formatting and lints of Python and Rust
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings -D missing-docs

types: install ## strict types of the package, and the stub of the core against the built core
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/python -m mypy.stubtest sardonyx._core --mypy-config-file pyproject.toml \
		--allowlist tests/unit/stubtest-allowlist.txt

rust-test: ## the tests of the Rust core (the border is tested from Python)
	cargo test --package sardonyx-core --locked --quiet

bench: install ## the benchmarks at a size that takes minutes
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks

bench-full: install ## the benchmarks at full size (hours)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks --full

docs: install ## write the generated pages of docs/ again
	$(BIN)/python docs/generate.py

docs-check: install ## check that docs, README and examples are true
	$(BIN)/python docs/generate.py --check
	$(PYTEST) tests/docs python/sardonyx

clean: ## remove everything that is built, .venv included
	rm -rf $(VENV) target .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f python/sardonyx/_core*.so
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
