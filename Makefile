# Two commands on a fresh machine: `make demo` opens the app on a real corpus, `make test` passes the tests.
# Both make their own environment in $(VENV); PYTHON may name another interpreter (3.11 or newer).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
UV := $(BIN)/uv pip install --python $(BIN)/python
ARGS ?=
# What tests write lies in memory where there is room: a run of indexing waits for the disk as long as it works.
MEMORY := $(shell df -m --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000 { print "/dev/shm" }')
# Three processes on two cores: a third of the time they wait for a browser, a server or a process that they killed.
WORKERS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
# Files with slow tests first, and a process that is done takes work from the others.
PYTEST ?= $(if $(MEMORY),TMPDIR=$(MEMORY)) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: demo app test test-all test-fast test-slow test-scale break-rules lint audit format bench growth systems table guide pictures notebooks clean

demo: $(VENV)/.installed
	$(BIN)/workbench demo $(ARGS)

app: $(VENV)/.installed
	$(BIN)/workbench app $(ARGS)

# Side by side: the linters use one core.
test: $(VENV)/.installed-dev
	$(MAKE) -j2 lint test-all

test-all: $(VENV)/.installed-dev
	$(PYTEST) $(ARGS)

test-fast: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.installed-dev
	TRIALS=$${TRIALS:-10} $(PYTEST) -m slow $(ARGS)

# The same rules where texts, words and vectors are on Milvus, and indexing on a Ray cluster: ray is 80 MB, which `make test` leaves out.
test-scale: $(VENV)/.installed-dev
	$(UV) -q -c constraints.txt -e '.[ray]'
	$(PYTEST) --store milvus tests/acceptance tests/integration/test_search.py tests/integration/test_redaction.py $(ARGS)
	$(PYTEST) tests/contract/test_stores.py tests/integration/test_cluster.py $(ARGS)

# Breaks each preset's rules one at a time on a copy of the tree, and fails where a test does not notice.
break-rules: $(VENV)/.installed-dev
	$(BIN)/python tests/acceptance/break_rules.py $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Asks a service of known faults about every installed package: needs the network.
audit: $(VENV)/.installed-dev
	$(PIP) install -q pip-audit
	$(BIN)/pip-audit

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m bench $(ARGS)

growth: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m bench.growth $(ARGS)

# Whole systems beside ours: make systems ARGS='--data FOLDER --keep FOLDER'. They have an environment of their own.
systems: $(VENV)/.installed-dev $(VENV)-systems/.installed
	PYTHONPATH=tests $(BIN)/python -m bench.systems --python $(VENV)-systems/bin/python $(ARGS)

$(VENV)-systems/.installed: tests/bench/systems.txt
	$(PYTHON) -m venv $(VENV)-systems
	$(VENV)-systems/bin/python -m pip --disable-pip-version-check install -q -r $<
	@touch $@

table: $(VENV)/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m bench.collections $(ARGS)

# Writes what the guide shows of the code's tables: fields, settings, commands, public names, tables of the corpus.
guide: $(VENV)/.installed-dev
	$(BIN)/python tests/docs/generated.py

# Takes the guide's pictures of the app on the sample corpus: needs chromium.
pictures: $(VENV)/.installed-dev
	PYTHONPATH=tests/browser:tests $(BIN)/python tests/docs/pictures.py $(ARGS)

notebooks: $(VENV)/.installed-dev
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf $(VENV) .workbench build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# pip brings torch, from wherever this machine has it, so that sentence-transformers does not bring another build; uv the rest,
# in a fifth of the time. Neither compiles what is not imported: of torch that is most.
$(VENV)/.uv: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "The venv module is missing: apt-get install python3-venv"; exit 1; }
	$(PIP) install -q --no-compile -c constraints.txt uv torch
	@touch $@

$(VENV)/.installed: $(VENV)/.uv pyproject.toml
	$(UV) -q -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.uv pyproject.toml
	$(UV) -q -c constraints.txt -e '.[dev,notebooks,mcp,endpoint,auth,milvus]'
	@touch $(VENV)/.installed $@
