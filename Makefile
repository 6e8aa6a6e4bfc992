# Every target does its own set-up on a fresh machine; a second run reuses what is there.
SHELL := /bin/bash
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export SPARK_LOCAL_IP := 127.0.0.1
# An hour starts some forty Python processes, a test run rewrites a hundred files' asserts: each compiles them only once.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
comma := ,
.PHONY: help setup demo test test-all test-fast check format bench evaluate mutants chaos docs docs-site pictures lock clean kubernetes-api

help: ## Show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install everything: packages, jars, JDK and Chromium where that is allowed
	@docker/setup.sh

demo: setup ## Start a small real fleet, run the hour on it (ONCE=1: then stop; FAULTS=ebs,memory,schema,rogue, all, none or chain; FLEET=msk or kubernetes)
	@PYTHONPATH=docker $(PYTHON) -m demo

test: setup ## Run the standard tests, two files at a time, fast ones first (15 min; ARGS=… for pytest)
	@$(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-all: setup ## Run every test (an hour; ARGS=… for pytest; ARGS='-m rare': what `make test` omits)
	@$(PYTHON) -m pytest -m "" -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-fast: setup ## Run the tests that need no JVM, browser or Airflow (1 min; many wait, so four files at a time)
	@$(PYTHON) -m pytest -m "not slow" -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

check: setup ## Lint, types, imports, vocabulary, SQL style, detectors and their docs, a sample of mutants
	@ruff check . && ruff format --check .
	@mypy
	@lint-imports --no-logo --no-cache >/dev/null || lint-imports --no-logo --no-cache
	@$(PYTHON) -m tests.vocabulary
	@sqlfluff lint sql --disable-progress-bar --processes 2
	@streamwarden docs --check
	@$(PYTHON) -m tests.sql.mutants -n 3 --tested

format: setup ## Format the Python code
	@ruff check --fix . ; ruff format .

bench: setup ## Measure: speed, CPU and memory against a floor in the same run (PART=load,scale)
	@PYTHONPATH=docker:. $(PYTHON) -m tests.bench

evaluate: setup ## Simulate fleets with known faults and score the detectors (SEEDS=20 or 1,2,3; SMALL=1, ONLY=volumes, FAULTS=none, PLATEAU=1)
	@PYTHONPATH=docker:. $(PYTHON) -m tests.simulator

mutants: setup ## Remove values from the detectors' cases and mutate their SQL; list what no case detects (ONLY=log_flush_slow,… N=30 of each SEED=1 OF=own or functions)
	@DRAWS=30 $(PYTHON) -m pytest -m "" tests/sql/test_properties.py -n 2 $(if $(ONLY),-k "$(subst $(comma), or ,$(ONLY))")
	@$(PYTHON) -m tests.sql.mutants --only "$(ONLY)" $(if $(OF),--of $(OF)) $(if $(N),-n $(N)) $(if $(SEED),--seed $(SEED))

chaos: setup ## Try many random faults: killed, lost, late, duplicated, wrong (PART=hour or trackers, N=1000)
	@PYTHONPATH=docker:. $(PYTHON) -m tests.chaos $(or $(PART),all) -n $(or $(N),1000) $(ARGS)

docs: setup ## Generate the pages under docs/
	@streamwarden docs

docs-site: setup ## Build the documentation site into var/site; check its links
	@$(PYTHON) -m pytest -m "not slow" tests/test_links.py
	@zensical build --clean --strict

pictures: setup ## Regenerate docs/pictures: pages in a real browser, a ticket in a real tracker, example charts
	@PICTURES=docs/pictures $(PYTHON) -m pytest -m "" -k pictures tests/plugins/ui/test_browser.py tests/plugins/ui/test_pictures.py
	@$(PYTHON) -m tests.sql.pictures

kubernetes-api: setup ## Build the API server of the Kubernetes tests and of FLEET=kubernetes (Go, some minutes, once)
	@PYTHONPATH=docker $(PYTHON) -m demo.kubernetes_api

lock: setup ## Update requirements.lock from pyproject.toml
	@uv pip compile pyproject.toml --extra airflow --extra pdf --group dev --universal --python-version 3.11 --generate-hashes --no-annotate --no-header -o requirements.lock --upgrade --quiet

clean: ## Stop the embedded server and remove var/
	@[ ! -x $(PYTHON) ] || streamwarden warehouse stop || true
	@rm -rf var
