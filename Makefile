# Highwater: `make run` brings everything up, `make test` is what CI runs. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SPARK_VENV := .venv-pipelines
PIP_COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

export PYTHONPATH := $(CURDIR):$(CURDIR)/platform
export DJANGO_SETTINGS_MODULE ?= control_plane.settings

.PHONY: help
help: ## list these targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

# -- what must be on the machine ------------------------------------------------------------------

.PHONY: need-python need-node need-java
need-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv, or set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }

need-node:
	@node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))' 2>/dev/null \
		|| { echo "Node.js 20 or newer is needed to build the dashboard: see nodejs.org, or apt-get install nodejs npm"; exit 1; }

need-java:
	@command -v java >/dev/null || { echo "Java 17 is needed for Spark and for Kafka's tools: apt-get install default-jdk-headless"; exit 1; }
	@command -v mvn >/dev/null || { echo "Maven is needed to fetch Kafka's and Spark's jars: apt-get install maven"; exit 1; }

.PHONY: system
system: ## install the system packages that the tests use (Debian, Ubuntu)
	@.ci/system-packages

# -- environments, each remade only when its pins change ------------------------------------------

$(BIN)/python: | need-python
	@echo "-- making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: requirements/base.txt | $(BIN)/python
	@echo "-- installing the packages that Highwater runs on (about a minute the first time)"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements/base.txt | { grep -E '^(Collecting|Successfully)' || true; }
	@$(BIN)/python -c 'import django, celery, channels, uvloop' && touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	@echo "-- installing the packages that the tests and checks use"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements/dev.txt | { grep -E '^(Collecting|Successfully)' || true; }
	@$(BIN)/python -c 'import pytest, hypothesis, mypy' && touch $@

frontend/node_modules/.stamp: frontend/package-lock.json | need-node
	@echo "-- installing the dashboard's packages"
	@cd frontend && npm ci --no-audit --no-fund && touch node_modules/.stamp

DASHBOARD := web/static/dashboard/index.html
$(DASHBOARD): frontend/node_modules/.stamp $(shell find frontend/src frontend/public frontend/index.html frontend/vite.config.ts -type f 2>/dev/null)
	@echo "-- building the dashboard"
	@cd frontend && npm run --silent build && touch ../$@

$(SPARK_VENV)/.installed: requirements/pipelines.txt | need-python need-java
	@echo "-- installing PySpark into $(SPARK_VENV) (400 MB, some minutes the first time)"
	@$(PYTHON) -m venv $(SPARK_VENV)
	@$(SPARK_VENV)/bin/python -m pip install --disable-pip-version-check --require-hashes -r requirements/pipelines.txt | { grep -E '^(Collecting|Successfully)' || true; }
	@touch $@

pipelines/jars/.copied: pipelines/pom.xml | need-java
	@echo "-- fetching Spark's Kafka connector"
	@mvn -B -q -f pipelines/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars
	@touch $@

KAFKA_PEER := tests/compatibility/kafka-peer
$(KAFKA_PEER)/libs/.copied: $(KAFKA_PEER)/pom.xml | need-java
	@echo "-- fetching Apache Kafka, to stand beside us in tests (54 MB)"
	@mvn -B -q -f $(KAFKA_PEER)/pom.xml dependency:copy-dependencies -DoutputDirectory=libs
	@touch $@

JAVA_CLIENTS := tests/compatibility/java
$(JAVA_CLIENTS)/libs/.copied: $(JAVA_CLIENTS)/pom.xml | need-java
	@echo "-- fetching Kafka's Java clients, new and old, and Kafka Streams (130 MB)"
	@for version in 4.3.1 3.9.1 2.1.0 0.11.0.3; do \
		mvn -B -q -f $(JAVA_CLIENTS)/pom.xml -Dkafka=$$version dependency:copy-dependencies -DoutputDirectory=libs/$$version; done
	@mvn -B -q -f $(JAVA_CLIENTS)/pom.xml -Dartifact=kafka-streams dependency:copy-dependencies -DoutputDirectory=libs/streams-4.3.1
	@touch $@

.PHONY: install frontend pipelines kafka-peer compat-clients
install: $(VENV)/.base $(DASHBOARD) ## make .venv, install, build the dashboard
frontend: $(DASHBOARD) ## build the dashboard into web/static/dashboard
pipelines: $(SPARK_VENV)/.installed pipelines/jars/.copied ## install PySpark and its jars (large; once)
compat-clients: $(JAVA_CLIENTS)/libs/.copied tests/compatibility/kafkajs/node_modules/.stamp ## fetch the clients of other languages that the matrix plays
kafka-peer: $(KAFKA_PEER)/libs/.copied ## fetch Apache Kafka's jars: its tools read our files in tests

# -- use ------------------------------------------------------------------------------------------

.PHONY: run pipeline-demo
run: install ## everything up: brokers, web, workers, demo tenant; prints URLs and a key
	@exec $(BIN)/python manage.py up $(ARGS)

pipeline-demo: $(VENV)/.base pipelines ## a Spark job that counts a topic's records per minute into another topic (needs `make run`)
	@$(BIN)/python -m pipelines.demo $(ARGS)

# -- check ----------------------------------------------------------------------------------------

.PHONY: check fmt test test-all bench crash-images simulate chaos chaos-long guarantees compat
check: $(VENV)/.dev frontend/node_modules/.stamp ## lint, types, import walls
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@cd frontend && npm run --silent check

fmt: $(VENV)/.dev ## format and mend what can be mended
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@cd frontend && npm run --silent fmt

tests/compatibility/kafkajs/node_modules/.stamp: tests/compatibility/kafkajs/package-lock.json | need-node
	@cd tests/compatibility/kafkajs && npm ci --no-audit --no-fund --silent && touch node_modules/.stamp

TEST_PARTS := $(VENV)/.dev $(DASHBOARD) compat-clients pipelines kafka-peer

test: system $(TEST_PARTS) check ## what CI runs: checks, then every test that is not marked slow
	@$(BIN)/python -m pytest -m "not slow"

test-all: system $(TEST_PARTS) check ## everything, the slow ones too
	@$(BIN)/python -m pytest

crash-images: $(VENV)/.base ## boot a log on every disk that a crash leaves of a workload (minutes)
	@$(BIN)/python -m broker_engine.simulator.crash_images $(ARGS)

SEEDS ?= 200
simulate: $(VENV)/.base ## whole clusters in one process, faults and clocks by seed (SEEDS=10000; one: ARGS="--seed N --trace")
	@$(BIN)/python -m broker_engine.simulator --seeds $(SEEDS) --jobs 2 $(ARGS)

chaos: $(VENV)/.dev ## real brokers killed, stopped, cut off, wiped under load; the history is checked (minutes)
	@$(BIN)/python -m tests.chaos $(ARGS)

chaos-long: $(VENV)/.dev ## the full programme: 200 kills and the rest, then fail-over timed (half an hour and more; in parts: ARGS="--tally var/chaos.json --seconds 540")
	@$(BIN)/python -m tests.chaos --long --failover 20 $(ARGS)

guarantees: $(VENV)/.dev ## each story of loss and duplication played with a real kill; writes docs/guarantees.md
	@$(BIN)/python -m tests.guarantees $(ARGS)

compat: $(VENV)/.dev compat-clients kafka-peer ## every client x every feature against three brokers, as a table; writes docs/compatibility.md (ARGS="--clients java --against kafka")
	@$(BIN)/python -m tests.compatibility --brokers 3 --write $(ARGS)

bench: $(VENV)/.dev kafka-peer ## Highwater beside Apache Kafka: ratios, a table, a picture (ARGS=--quick: five minutes)
	@$(BIN)/python -m benchmarks $(ARGS)

# -- keep -----------------------------------------------------------------------------------------

.PHONY: lock clean
lock: $(BIN)/python ## pin requirements/*.in anew, with hashes and without index lines
	@$(BIN)/python -m pip install --quiet pip-tools
	@for set in base dev pipelines; do $(PIP_COMPILE) -o requirements/$$set.txt requirements/$$set.in; done

clean: ## remove what was built; data under var/ stays (remove it by hand)
	@rm -rf $(VENV) $(SPARK_VENV) frontend/node_modules tests/compatibility/kafkajs/node_modules web/static/dashboard \
		pipelines/jars $(KAFKA_PEER)/libs $(JAVA_CLIENTS)/libs $(JAVA_CLIENTS)/classes tests/compatibility/go/bin staticfiles .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
