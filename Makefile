# Uses the active virtual environment, or makes .venv here.
VENV := $(if $(VIRTUAL_ENV),$(VIRTUAL_ENV),.venv)
BIN := $(VENV)/bin
PYTHON ?= python3
RUN_STAMP := $(VENV)/.lcc-installed
DEV_STAMP := $(VENV)/.lcc-dev-installed

LCC_FUZZ_SECONDS ?= 60
FUZZ_TARGETS := codec conversation url spool_file content_coding notations

.PHONY: help demo test check lint types imports docs bench soak fuzz pyz clean corpora

help: ## show this
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(RUN_STAMP) ## the main job on real documents, to the end
	$(BIN)/python tools/demo.py

# What measures rates and times runs alone, everything else side by side: most of it waits most of the time. On a
# machine that has other work what fails is tried once more and shown as RERUN; what needs that often is to be mended.
test: $(DEV_STAMP) ## every test
	$(BIN)/python -m pytest --reruns 1 -m 'not alone' -n 3 --dist loadfile
	$(BIN)/python -m pytest --reruns 1 -m alone

check: lint types imports docs test ## what CI runs

lint: $(DEV_STAMP) ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV_STAMP) ## mypy --strict
	$(BIN)/mypy

imports: $(DEV_STAMP) ## the import contract
	$(BIN)/lint-imports

docs: $(DEV_STAMP) ## the documentation, warnings are errors
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build/html

bench: $(DEV_STAMP) ## measurements, as ratios
	$(BIN)/python bench/intake.py
	$(BIN)/python bench/turns.py
	$(BIN)/python bench/export.py

soak: $(DEV_STAMP) ## the long versions: hostile clients, kills and power cuts by the hundred, a machine in trouble
	LCC_KILLS=200 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_kills.py
	LCC_KILLS=10 LCC_WORKER_URLS=200 $(BIN)/python -m pytest -p no:randomly tests/acceptance/test_several_workers.py
	LCC_CUTS=200 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_power_cuts.py
	LCC_SYSTEMD=1 $(BIN)/python -m pytest -p no:randomly tests/integration/test_systemd.py
	LCC_AWAY=30 $(BIN)/python -m pytest -p no:randomly tests/acceptance/test_database_away.py
	LCC_MACHINE=long $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_machine_trouble.py
	LCC_SLOW_CLIENTS=500 LCC_WRONG_LOGINS=1000 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_hostile_providers.py
	LCC_TLS_PUSHES=200 LCC_SIGHUPS=50 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_tls.py tests/faults/test_sighup.py
	LCC_FEED_SECONDS=60 $(BIN)/python -m pytest -p no:randomly -s tests/contract/test_following.py
	LCC_MEASURE_SECONDS=60 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_bandwidth.py
	LCC_SPELLINGS=1000 LCC_BOMBS=all $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_private_addresses.py tests/faults/test_hostile_sites.py
	LCC_STREAMS=10000 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_mutated_streams.py
	LCC_MANY_URLS=5000000 LCC_ENDLESS_BYTES=500000000 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_huge_sets.py

fuzz: $(DEV_STAMP) ## coverage-guided fuzzing, LCC_FUZZ_SECONDS (60) for each reader of hostile input
	$(BIN)/python -m pip install -q -e '.[fuzz]'
	for target in $(FUZZ_TARGETS); do \
		$(BIN)/python -m tests.fuzz.run $$target -max_total_time=$(LCC_FUZZ_SECONDS) -print_final_stats=1 || exit 1; \
	done

pyz: $(RUN_STAMP) ## dist/lcc-provider.pyz, the provider commands in one file
	$(BIN)/python tools/build_pyz.py

$(RUN_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@ $(RUN_STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean: ## remove what was built
	rm -rf dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis demo

corpora: .corpora/python3.11-doc .corpora/postgresql-doc-15 ## real documents for the acceptance tests (Debian packages)

.corpora/%:
	mkdir -p .corpora && cd .corpora && apt-get download -q $* && dpkg-deb -x $*_*.deb $*.part && mv $*.part $* && rm $*_*.deb
