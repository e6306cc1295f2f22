# `make demo` and `make test` on a fresh machine; everything is installed into .venv, gdb apart.
#
#   make demo                  run the demo and show its diagnosis
#   make test                  run all tests           make test ARGS='-k report'
#   make interpreters          find or set up every CPython that the tests run on, outside the tree (4 minutes, once)
#   make lint                  ruff and mypy
#   make fuzz                  10,000 damaged cores      make fuzz ARGS='--count 500 --python 3.12'; bundles: ARGS=--bundles
#   make kills                 captures and targets killed, jobs cancelled, 200 times each    make kills ARGS='--count 20'
#   make applications         real servers, frameworks and shells, idle and in two hangs each, captured: docs/applications.md (30 minutes)
#   make bench-quick           ratios of pause, stacks, start, report and verdict, in two minutes
#   make attacks               libraries that vanish, directories that are swapped, 200 captures each
#   make bench                 full stacks beside pystack's
#   make bench-pause           how long a busy target stands still, beside py-spy, pystack, gcore
#   make bench-plugin          what the pytest plugin costs, beside pytest-timeout (valgrind)
#   make bench-graph           the wait graph of 2,000 threads and 20,000 tasks
#   make corpora               record the corpus anew  make corpora ARGS='--cases sleeping/*'
#   make new-pattern ID=my-id FAMILY=locks    lay out the files of a new pattern
#   make docs                  write docs/patterns from the patterns, man/ from the commands, the schema from the types
#   make clean                 remove .venv and what builds leave
#
# PYTHON=/path/to/python3 chooses the interpreter of .venv.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
# Tests of one file run one after the other; -n 0 for a debugger. Live tests wait for most of their time (deadlines, windows),
# so that two processors serve five of them.
WORKERS ?= 5

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check --quiet

# The stamps carry the interpreter's version: with another PYTHON the environment is made anew. A stamp is
# written last, so an interrupted run leaves none, and the next one starts that step from nothing.
TAG := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
MADE := $(VENV)/.made-$(TAG)
INSTALLED := $(VENV)/.installed-$(TAG)
TESTABLE := $(VENV)/.testable-$(TAG)

.PHONY: applications attacks bench bench-graph bench-pause bench-plugin bench-quick help demo test lint docs fuzz kills corpora interpreters gdb new-pattern clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(INSTALLED) gdb
	@$(RUN) -m postmortem demo $(ARGS)

test: $(TESTABLE) gdb
	@$(RUN) -m pytest -n $(WORKERS) --dist loadfile --max-worker-restart 2 --durations 12 $(ARGS)

lint: $(TESTABLE)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check --quiet .
	$(RUN) -m mypy
	@folder=$$(mktemp -d) && ln -s '$(CURDIR)/gdb' $$folder/postmortem_gdb && cd $$folder && \
	'$(abspath $(RUN))' -m mypy --strict --explicit-package-bases -p postmortem_gdb && rm -r $$folder

docs: $(INSTALLED)
	@$(RUN) -m tools.docs
	@$(RUN) -m tools.schema
	@$(RUN) -m tools.man

new-pattern: $(INSTALLED)
	@$(RUN) -m tools.new_pattern $(ID) $(FAMILY)

bench: $(TESTABLE) gdb
	@$(RUN) -m bench.stacks $(ARGS)

bench-quick: $(TESTABLE) gdb
	@$(RUN) -m bench.quick $(ARGS)

bench-pause: $(TESTABLE) gdb
	@$(RUN) -m bench.pause $(ARGS)

# Cores of the interpreters that are set up, kept outside the tree; POSTMORTEM_FUZZ chooses the folder.
fuzz: $(TESTABLE)
	@$(RUN) -m tests.faults.fuzz $(ARGS)

bench-plugin: $(TESTABLE)
	@$(RUN) -m bench.plugin $(ARGS)

kills: $(TESTABLE) gdb
	@$(RUN) -m tests.faults.kills $(ARGS)

attacks: $(TESTABLE) gdb
	@$(RUN) -m tests.attacks.campaign $(ARGS)

# Virtual environments of the applications are kept outside the tree; POSTMORTEM_APPLICATIONS chooses the folder.
applications: $(TESTABLE) gdb
	@$(RUN) -m tests.applications $(ARGS)

bench-graph: $(TESTABLE)
	@$(RUN) -m bench.graph $(ARGS)

corpora: $(TESTABLE) gdb
	$(RUN) -m tests.corpora.record $(ARGS)

# Needs no environment: what it lacks it names. POSTMORTEM_INTERPRETERS chooses the folder.
interpreters:
	@$(PYTHON) -m tests.interpreters $(ARGS)

$(MADE):
	@test -n "$(TAG)" || { echo "make: $(PYTHON) does not run; install python3 and python3-venv, or set PYTHON" >&2; exit 1; }
	@echo "making $(VENV) with Python $(TAG)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@# Editable installs of a pyproject need pip 21.3; Ubuntu 20.04's is older.
	@$(PIP) install 'pip>=21.3'
	@touch $@

$(INSTALLED): $(MADE) pyproject.toml
	@echo "installing postmortem into $(VENV)"
	@$(PIP) install --editable .
	@touch $@

$(TESTABLE): $(INSTALLED)
	@echo "installing what the tests need into $(VENV)"
	@$(PIP) install --editable '.[test]'
	@touch $@

# No stamp: gdb may be installed or removed without us. The search is postmortem's own. A system package is
# preferred where it may be installed without asking, because it knows the system's libraries; the wheel needs nobody.
gdb: $(INSTALLED)
	@found() { $(RUN) -c 'import sys; from postmortem.native import find_gdb; sys.exit(find_gdb() is None)'; }; \
	if found; then exit 0; fi; \
	as_root=; if [ "$$(id -u)" != 0 ]; then as_root='sudo -n'; fi; \
	if command -v apt-get >/dev/null && $$as_root true 2>/dev/null; then \
	    echo "installing gdb with apt-get"; \
	    { $$as_root apt-get update -qq && \
	      $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gdb >/dev/null; } || true; \
	fi; \
	if found; then exit 0; fi; \
	echo "installing gdb into $(VENV)"; \
	$(PIP) install gdb-for-pwndbg; \
	found || { echo "make: no gdb could be installed; try: apt-get install gdb" >&2; exit 1; }

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
