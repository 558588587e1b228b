# Thin on purpose: every target is one or a few commands that can be typed by hand.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := $(abspath $(or $(PLIMSOLL_VENV),.venv))
BIN := $(VENV)/bin
CLUSTER := e2e/cluster/cluster
SHELL_SCRIPTS = .ci/run $(wildcard hack/*.sh operator/tests/golden/*.sh e2e/*.sh e2e/cluster/lib/*.sh) $(CLUSTER) \
    e2e/ceph/ceph e2e/ceph/check e2e/ceph/capture $(wildcard e2e/ceph/lib/*.sh) e2e/rook/rook e2e/rook/check \
    e2e/csi/csi $(wildcard e2e/csi/lib/*.sh) e2e/studies/measure e2e/studies/all \
    e2e/monitoring/monitoring $(wildcard e2e/monitoring/lib/*.sh) e2e/flux/flux e2e/flux/objects.sh \
    e2e/cluster/check e2e/cluster/versions.sh e2e/cluster/node/pod-network \
    $(filter-out %.py,$(wildcard e2e/cluster/build/*))
WORKFLOWS = $(wildcard .github/workflows/*.yaml) manifests/gitops/github/benchmark.yaml
REAL := fio or network or system or crd or chart or browser
SELECT :=
MARK :=
ONLY ?=
WORKERS := 0
COMPARISONS :=
SEARCHES :=
LINES :=
TRIALS :=

export PLIMSOLL_VENV := $(VENV)
# Outside the tree, so that the next checkout reuses it; one directory per configuration, or they invalidate each other.
MYPY_CACHE := $(or $(PLIMSOLL_CACHE),$(HOME)/.cache/plimsoll)/mypy
# Without bytecode, every test process recompiles all tests.
unexport PYTHONDONTWRITEBYTECODE

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } \
	    /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	    /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Prepare the machine and the virtual environment
	@hack/setup.sh

.PHONY: clean
clean: ## Remove what building and testing left; keeps the virtual environment and the fio cache
	rm -rf build dist operator/dist operator/.mypy_cache operator/.ruff_cache operator/.pytest_cache operator/.hypothesis \
	    operator/.import_linter_cache operator/.coverage operator/htmlcov
	find operator -name __pycache__ -type d -prune -exec rm -rf {} +

##@ Check

.PHONY: lint
lint: setup ## Check style and architecture
	cd operator && $(BIN)/ruff check . ../hack ../e2e && $(BIN)/ruff format --check . ../hack ../e2e
	cd operator && $(BIN)/lint-imports --no-logo
	$(BIN)/shellcheck --external-sources $(SHELL_SCRIPTS)
	$(BIN)/zizmor --offline --quiet --no-progress --strict-collection .github manifests/gitops/github/benchmark.yaml
	@if printf 'go1.25\n%s\n' "$$(go env GOVERSION 2> /dev/null)" | sort --check=quiet --version-sort; then \
	    actionlint=$$(hack/tool.sh actionlint) && "$$actionlint" -shellcheck $(BIN)/shellcheck $(WORKFLOWS); \
	else echo "make lint: without Go 1.25 or later, actionlint does not check the workflows of GitHub" >&2; fi

.PHONY: type
type: setup ## Check types
	cd operator && $(BIN)/mypy --cache-dir $(MYPY_CACHE)/operator
	cd e2e/tests && $(BIN)/mypy --cache-dir $(MYPY_CACHE)/e2e --strict --python-version 3.11 .
	cd e2e/rook/controller && $(BIN)/mypy --cache-dir $(MYPY_CACHE)/rook --strict --python-version 3.11 .

.PHONY: lowest-versions
lowest-versions: setup ## Import and run Plimsoll with the lowest versions of its dependencies that it declares
	hack/lowest_versions.sh

.PHONY: check
check: ## The inner loop: style, types, and the tests that need nothing but Python
	@$(or $(PYTHON),python3) hack/stages.py lint types pure

.PHONY: test
test: ## What a first look needs: `make check`, and twenty tests with a real fio and real processes; without a cluster
	@$(or $(PYTHON),python3) hack/stages.py $(if $(KEEP_GOING),--keep-going) lint types pure essential

.PHONY: test-all
test-all: ## Run every check that a change must pass, in parallel; installs prerequisites, keeps the cluster
	@$(or $(PYTHON),python3) hack/stages.py $(if $(KEEP_GOING),--keep-going)

.PHONY: test-fast
test-fast: setup ## The tests that need nothing but Python
	cd operator && $(BIN)/pytest -q -n 3 --dist worksteal --durations 10 -m "not ($(REAL))" $(ONLY)

.PHONY: test-marked
test-marked: setup ## The operator's tests with one marker that need no more than a real fio: MARK=essential WORKERS=4
	fio=$$(hack/fio.sh) && cd operator && PLIMSOLL_FIO=$$fio $(BIN)/pytest -q -n $(WORKERS) --dist loadgroup --durations 10 \
	    -m $(MARK) $(or $(ONLY),$$(grep --recursive --files-with-matches --include='test_*.py' 'mark\.$(MARK)' tests))

.PHONY: test-real
test-real: setup ## The operator's tests with a real fio, real processes, a real kube-apiserver, Helm and Chromium: SELECT=system
	fio=$$(hack/fio.sh) && binaries=$$($(CLUSTER) binaries) && helm=$$(hack/tool.sh helm) && \
	    promtool=$$(hack/tool.sh promtool) && kstatus=$$(hack/tool.sh kstatus) && cd operator && \
	    PLIMSOLL_FIO=$$fio PLIMSOLL_KUBE_BINARIES=$$binaries PLIMSOLL_HELM=$$helm PLIMSOLL_PROMTOOL=$$promtool \
	    PLIMSOLL_KSTATUS=$$kstatus $(BIN)/pytest -q -n $(or $(filter-out 0,$(WORKERS)),3) --dist loadgroup --durations 10 \
	    -m "$(or $(SELECT),($(REAL)) and not storm)" $(ONLY)

.PHONY: test-api-version
test-api-version: setup ## The tests of definitions and policies with another kube-apiserver than the cluster's: API=oldest or API=newest
	binaries=$$($(CLUSTER) binaries) && server=$$(hack/tool.sh kube-apiserver-$(API)) && helm=$$(hack/tool.sh helm) && \
	    "$$server" --version && \
	    cd operator && PLIMSOLL_KUBE_BINARIES=$$binaries PLIMSOLL_KUBE_APISERVER=$$server PLIMSOLL_HELM=$$helm \
	    $(BIN)/pytest -q -n $(or $(filter-out 0,$(WORKERS)),3) --dist loadgroup --durations 10 -m crd $(or $(ONLY),$(addprefix tests/crd/test_,constraints.py refusals.py runs.py results.py suites.py studies.py installation_check.py) \
	    $(addprefix tests/chart/test_admission_,accepted.py operator.py jobs.py reserved.py burner.py))

.PHONY: test-network
test-network: setup ## The operator's tests with real iperf3, netcat and ping between clients on this machine
	cd operator && $(BIN)/pytest -q --durations 5 -m network $(ONLY)

.PHONY: storms
storms: setup ## Inject all faults of docs/reference/limits.md that need no cluster, also those that take minutes; needs root
	fio=$$(hack/fio.sh) && binaries=$$($(CLUSTER) binaries) && cd operator && PLIMSOLL_FIO=$$fio \
	    PLIMSOLL_KUBE_BINARIES=$$binaries $(BIN)/pytest -q -n $(or $(filter-out 0,$(WORKERS)),2) --dist loadgroup \
	    --durations 10 -m fault $(or $(ONLY),$$(grep --recursive --files-with-matches --include='test_*.py' 'mark\.fault' tests))

.PHONY: test-e2e
test-e2e: setup ## End-to-end tests on a cluster that is up, with Plimsoll and Ceph: SELECT='ceph and not kills' WORKERS=0
	cd e2e/tests && $(BIN)/pytest -v -n $(WORKERS) --maxschedchunk 1 --durations 10 -m "$(SELECT)" $(ONLY)

.PHONY: test-upgrade
test-upgrade: setup ## Upgrade an installation of an earlier revision in a cluster that is up, while a run measures: FROM=REVISION
	e2e/upgrade.sh $(FROM)

.PHONY: coverage
coverage: setup ## Which lines the tests that need nothing but Python do not reach
	cd operator && $(BIN)/pytest -q -n 2 -m "not ($(REAL))" --cov --cov-report=term

.PHONY: search
search: setup ## Look for counterexamples: the property tests with many random examples; what is found becomes an example
	cd operator && $(BIN)/pytest -n 2 --hypothesis-profile search --timeout 1800 -m hypothesis

.PHONY: verify
verify: setup ## Fail if a generated file does not match its source
	hack/lock.sh --check
	$(BIN)/python hack/checks_table.py --check
	$(BIN)/python hack/crds.py --check
	$(BIN)/python hack/reasons_tables.py --check
	$(BIN)/python hack/api_docs.py --check
	$(BIN)/python hack/cli_docs.py --check
	$(BIN)/python hack/samples.py --check
	$(BIN)/python hack/metrics_docs.py --check
	$(BIN)/python hack/faults_table.py --check
	$(BIN)/python hack/dashboards.py --check
	helm=$$(hack/tool.sh helm) && PLIMSOLL_HELM=$$helm $(BIN)/python hack/chart.py --check

##@ Change

.PHONY: format
format: setup ## Format, and fix what can be fixed
	cd operator && $(BIN)/ruff check --fix-only . ../hack ../e2e && $(BIN)/ruff format . ../hack ../e2e

.PHONY: generate
generate: setup ## Regenerate the generated files
	hack/lock.sh
	$(BIN)/python hack/checks_table.py
	$(BIN)/python hack/crds.py
	$(BIN)/python hack/reasons_tables.py
	$(BIN)/python hack/api_docs.py
	$(BIN)/python hack/cli_docs.py
	$(BIN)/python hack/samples.py
	$(BIN)/python hack/metrics_docs.py
	$(BIN)/python hack/faults_table.py
	$(BIN)/python hack/dashboards.py
	helm=$$(hack/tool.sh helm) && PLIMSOLL_HELM=$$helm $(BIN)/python hack/chart.py

.PHONY: docs
docs: setup ## Build the site of the documentation into build/site, strictly: every page, link and anchor
	hack/docs.sh

.PHONY: chart
chart: ## Package the Helm chart into build/
	helm=$$(hack/tool.sh helm) && "$$helm" package charts/plimsoll --destination build

# The version may come from the name of a tag: neither make nor the shell may expand it.
.PHONY: release
release: export override VERSION := $(value VERSION)
release: export override REPOSITORY := $(value REPOSITORY)
release: setup ## Build and start all that a release publishes, in dist/: VERSION=... REPOSITORY=registry.example.org/team
	hack/release.sh "$${VERSION:?}" "$${REPOSITORY:?}"

# Variables of the command line reach the script through its environment.
.PHONY: images
images: ## Build the container images, and print the Helm values for them: REGISTRY=... TAG=... PUSH=1
	@hack/images.sh

##@ Run

.PHONY: quickstart
quickstart: setup ## Benchmark a directory of this machine, without a cluster: once correctly, once with a deliberate mistake
	fio=$$(hack/fio.sh) && PLIMSOLL_FIO=$$fio hack/quickstart.sh build/quickstart

.PHONY: demo
demo: setup ## A BenchmarkRun in a real Kubernetes cluster, from nothing
	e2e/demo.sh

.PHONY: demo-ceph
demo-ceph: setup ## A BenchmarkRun on a real Ceph in that cluster, from the OSDs up
	e2e/demo.sh ceph

.PHONY: demo-layers
demo-layers: setup ## One BenchmarkRun on that Ceph from the network to a file system, and the limit of each layer
	e2e/demo.sh layers

.PHONY: demo-line
demo-line: setup ## How much that Ceph carries before latency breaks, searched for twice
	e2e/demo.sh line

.PHONY: studies
studies: setup ## All five studies, in their small forms, on three Cephs at once: more than an hour, 70 GiB
	e2e/studies/all

.PHONY: demo-study
demo-study: setup ## A published study repeated on that Ceph, in 15 minutes: its hypotheses, and its shares beside yours
	e2e/demo_study.sh

.PHONY: bench
bench: setup ## Measure Plimsoll itself; needs root
	fio=$$(hack/fio.sh) && cd operator && PLIMSOLL_FIO=$$fio PYTHONPATH=tests $(BIN)/python bench/run.py

.PHONY: bench-scale
bench-scale: setup ## Measure a conductor with a thousand agents, and an operator with thousands of finished runs on a real kube-apiserver; minutes
	fio=$$(hack/fio.sh) && binaries=$$($(CLUSTER) binaries) && cd operator && \
	    PLIMSOLL_FIO=$$fio PLIMSOLL_KUBE_BINARIES=$$binaries PYTHONPATH=tests $(BIN)/python bench/run.py merge simulated scale

.PHONY: bench-comparing
bench-comparing: setup ## Measure how often comparisons of runs, rounds and lines, and hypotheses, are right: tables of docs/explanation/comparing.md and docs/explanation/suites.md; should take less than an hour
	cd operator && PYTHONPATH=tests $(BIN)/python bench/comparing.py $(COMPARISONS)
	cd operator && PYTHONPATH=tests $(BIN)/python bench/rounds.py $(ROUNDS)
	cd operator && PYTHONPATH=tests $(BIN)/python bench/compared_lines.py $(SEARCHES)

.PHONY: bench-trust
bench-trust: setup ## Measure how often verdicts are right: the table of docs/explanation/trust.md; takes minutes
	cd operator && PYTHONPATH=tests $(BIN)/python bench/trust.py $(TRIALS)

.PHONY: bench-line
bench-line: setup ## Measure how well the line is found: tables of docs/explanation/line.md; takes half an hour
	cd operator && PYTHONPATH=tests $(BIN)/python bench/line.py $(SEARCHES)

.PHONY: bench-line-device
bench-line-device: setup ## Search for the line of a really throttled device, where theory knows it: a table of docs/explanation/line.md; needs root
	fio=$$(hack/fio.sh) && cd operator && PLIMSOLL_FIO=$$fio PYTHONPATH=tests $(BIN)/python bench/line_device.py $(LINES)

.PHONY: bench-arrivals
bench-arrivals: setup ## Measure whether replayed arrivals are random: a table of docs/explanation/line.md; needs root without PLACE
	fio=$$(hack/fio.sh) && cd operator && PLIMSOLL_FIO=$$fio PYTHONPATH=tests $(BIN)/python bench/arrivals.py $(PLACE)

.PHONY: bench-cluster
bench-cluster: setup ## Measure the operator in a real cluster, stage by stage
	$(CLUSTER) up
	e2e/install.sh
	cd e2e/tests && $(BIN)/python bench.py
