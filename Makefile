# Thin on purpose: every target is one or a few commands that can be typed by hand.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := $(abspath $(or $(PLIMSOLL_VENV),.venv))
BIN := $(VENV)/bin
SHELL_SCRIPTS = .ci/run $(wildcard hack/*.sh operator/tests/golden/*.sh)
QUICKSTART_DIR := build/quickstart

export PLIMSOLL_VENV := $(VENV)

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } \
	    /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	    /^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Prepare the machine and the virtual environment
	@hack/setup.sh

.PHONY: clean
clean: ## Remove what building and testing left; keeps the virtual environment and the fio cache
	rm -rf build operator/dist operator/.mypy_cache operator/.ruff_cache operator/.pytest_cache operator/.hypothesis \
	    operator/.import_linter_cache operator/.coverage operator/htmlcov
	find operator -name __pycache__ -type d -prune -exec rm -rf {} +

##@ Check

.PHONY: lint
lint: setup ## Check style and architecture
	cd operator && $(BIN)/ruff check . ../hack && $(BIN)/ruff format --check . ../hack
	cd operator && $(BIN)/lint-imports --no-logo
	$(BIN)/shellcheck $(SHELL_SCRIPTS)

.PHONY: type
type: setup ## Check types
	cd operator && $(BIN)/mypy

.PHONY: test
test: lint type ## Lint, check types and run every test, also those that need a real fio
	fio=$$(hack/fio.sh) && cd operator && PLIMSOLL_FIO=$$fio $(BIN)/pytest --cov --cov-report=term

.PHONY: test-fast
test-fast: setup ## Run the tests that need nothing but Python
	cd operator && $(BIN)/pytest -m "not fio and not system and not crd"

.PHONY: verify
verify: setup ## Fail if a generated file is not what its source says
	hack/lock.sh --check
	$(BIN)/python hack/checks_table.py --check

##@ Change

.PHONY: format
format: setup ## Format, and fix what can be fixed
	cd operator && $(BIN)/ruff check --fix-only . ../hack && $(BIN)/ruff format . ../hack

.PHONY: generate
generate: setup ## Make the generated files anew
	hack/lock.sh
	$(BIN)/python hack/checks_table.py

##@ Run

.PHONY: quickstart
quickstart: setup ## Benchmark a directory of this machine, without a cluster
	rm -rf $(QUICKSTART_DIR) && mkdir -p $(QUICKSTART_DIR)/data
	fio=$$(hack/fio.sh) && $(BIN)/plimsoll run manifests/samples/quickstart.yaml --fio "$$fio" \
	    --directory $(QUICKSTART_DIR)/data --output $(QUICKSTART_DIR)/results

.PHONY: bench
bench: setup ## Measure Plimsoll itself
	fio=$$(hack/fio.sh) && PLIMSOLL_FIO=$$fio $(BIN)/python operator/bench/run.py
