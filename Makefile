# Everything a developer or CI runs. Each target sets up what it needs first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?=
FOR ?=
VENV := .venv
STAMP := $(VENV)/.setup
BIN := $(VENV)/bin
SOURCES := src tests scripts benchmarks examples

.PHONY: help setup demo test proof proof-long check format lock clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## Make .venv from the hash-locked requirements; install a PostgreSQL if there is none

NODE_FOLDERS := tests/docs/node examples/consumer-node

$(STAMP): requirements/dev.txt pyproject.toml scripts/setup.sh $(NODE_FOLDERS:%=%/package-lock.json)
	@PYTHON='$(PYTHON)' scripts/setup.sh $(VENV)
	@touch $@

demo: setup ## Show a hold being released, end to end (FOR=20 stops it after 20 seconds)
	@$(BIN)/freehold demo $(if $(FOR),--for $(FOR))

# Much of the tests' time is waiting for processes and disks: two lanes, each with its own servers.
LANE_ONE := tests/crash tests/behaviour tests/insight tests/scenarios tests/relay tests/brokers tests/examples tests/docs tests/telemetry
LANE_TWO := $(filter-out $(LANE_ONE) tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)) $(wildcard tests/test_*.py))

test: setup ## Run every test but the whole sweeps
	@scripts/test_lanes.sh "not proof" "$(LANE_ONE)" "$(LANE_TWO)"

# What compares times within one run has the machine to itself.
PROOF_ALONE := tests/growth tests/insight
PROOF_MOVED := tests/reports/test_fleet.py
PROOF_ONE := tests/behaviour tests/crash tests/house tests/unit $(PROOF_MOVED)
PROOF_TWO := $(filter-out $(PROOF_ONE) $(PROOF_ALONE),$(LANE_ONE) $(LANE_TWO)) $(PROOF_MOVED:%=--ignore=%)

proof: setup ## Run the whole sweeps
	@scripts/test_lanes.sh proof "$(PROOF_ONE)" "$(PROOF_TWO)"
	@$(BIN)/pytest -m proof $(PROOF_ALONE)

proof-long: setup ## Run the whole sweeps at length (hours)
	@FREEHOLD_PROOF=long $(BIN)/pytest -m proof --timeout 0

check: setup ## Run the gates: format, lint, types, imports
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup ## Format, and mend what the linter can mend
	@$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

lock: setup ## Write the locked requirements anew from pyproject.toml and dev.in
	@requirements/lock.sh

clean: ## Remove what the other targets made
	@rm -rf $(VENV) $(NODE_FOLDERS:%=%/node_modules) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
