# Uses the active virtual environment, or makes .venv here.
VENV := $(if $(VIRTUAL_ENV),$(VIRTUAL_ENV),.venv)
BIN := $(VENV)/bin
PYTHON ?= python3
RUN_STAMP := $(VENV)/.lcc-installed
DEV_STAMP := $(VENV)/.lcc-dev-installed

# Tests start thousands of processes: none of them is to compile this package anew.
unexport PYTHONDONTWRITEBYTECODE

LCC_FUZZ_SECONDS ?= 60
FUZZ_TARGETS := codec conversation json_set url spool_file content_coding notations query answer http_answer cost

.PHONY: help demo demo-alerts test test-slow check lint types imports docs bench bench-quick soak fuzz mutants lock behind dist pyz clean corpora compiled

help: ## show this
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(RUN_STAMP) ## the main job on real documents, to the end; says at the start how long it takes here
	$(BIN)/python tools/demo.py

demo-alerts: $(DEV_STAMP) corpora ## the same for alerts: 300 pages, two owners; mails, webhooks and feeds are checked
	$(BIN)/python -m tools.demo_alerts

# Folders of their own, so that several of these may run side by side. What failed keeps its folder. In memory, where
# 8 GiB are free: ext4 looks at every inode that was deleted in the last minute before it takes one, and tests delete a lot.
FOLDERS := $(shell df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 && $$4 >= 8388608 { found = 1 } END { print found ? "/dev/shm" : "/tmp" }')
IN_A_FOLDER = folder=$$(mktemp -d "$${TMPDIR:-$(FOLDERS)}/lcc-tests.XXXXXX") && $(BIN)/python -m
PYTEST = pytest --basetemp="$$folder/tests"
# A test that hangs fails after `timeout`; where that exception is swallowed, its process ends and says where it was.
HANGS_NEVER = --timeout=$(1) -o faulthandler_timeout=$$(($(1) + 60)) -o faulthandler_exit_on_timeout=true
SIDE_BY_SIDE = --dist loadfile --no-loadscope-reorder
LCC_TEST_PROCESSES ?= 4
LCC_SLOW_PROCESSES ?= 6
SLOW_FOLDERS := $(addprefix tests/,acceptance component contract faults integration)

# Rewriting assertions is most of what collecting costs the first time: once, not in every process of `make test`.
compiled: $(DEV_STAMP)
	$(BIN)/python -m pytest --collect-only -qq > /dev/null

test: $(DEV_STAMP) ## the tests, without the long ones, in some minutes
	$(IN_A_FOLDER) $(PYTEST) -n $(LCC_TEST_PROCESSES) $(SIDE_BY_SIDE) $(call HANGS_NEVER,300) -m 'not slow' && rm -rf "$$folder"

test-slow: $(DEV_STAMP) corpora ## the long tests: MariaDB and PostgreSQL, kills, power cuts, whole sites, hostile crowds
	$(IN_A_FOLDER) tests.servers_in_memory $(BIN)/python -m $(PYTEST) -n $(LCC_SLOW_PROCESSES) $(SIDE_BY_SIDE) $(call HANGS_NEVER,900) -m 'slow and not soak' $(SLOW_FOLDERS) && rm -rf "$$folder"

check: lint types imports docs corpora compiled test test-slow bench-quick ## what CI runs

lint: $(DEV_STAMP) ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV_STAMP) ## mypy --strict
	$(BIN)/mypy

imports: $(DEV_STAMP) ## the import contract
	$(BIN)/lint-imports

docs: $(DEV_STAMP) ## the documentation, warnings are errors
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build/html

bench: $(DEV_STAMP) corpora ## measurements, as ratios, less than two hours; tables and chart of the crawls in dist/
	$(BIN)/python bench/suite.py

bench-quick: $(DEV_STAMP) corpora ## every measurement small, two at a time: to see that all of them run
	$(BIN)/python bench/suite.py --quick

soak: $(DEV_STAMP) corpora ## the long versions: hostile clients, kills and power cuts by the hundred, a machine in trouble
	$(BIN)/python -m pytest -m soak $(SLOW_FOLDERS)
	LCC_KILLS=200 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_kills.py
	LCC_YEAR=whole LCC_SET_URLS=1000000 $(BIN)/python -m pytest -p no:randomly -s tests/contract/test_a_year.py tests/unit/test_uns_codec.py
	LCC_LONG_QUEUE=1000000 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_long_queue.py
	LCC_KILLS=10 LCC_WORKER_URLS=200 $(BIN)/python -m pytest -p no:randomly tests/acceptance/test_several_workers.py
	LCC_SOURCE_KILLS=20 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_source_kills.py tests/acceptance/test_redis_kills.py
	LCC_REDIS_FAULTS=100 LCC_REDIS_PAGES=20000 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_redis_faults.py
	LCC_INDEXNOW_KILLS=20 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_indexnow_kills.py
	LCC_ALERT_KILLS=20 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_alerts_whole_way.py
	LCC_WORKER_KILLS=20 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_worker_kills.py
	LCC_TRACKER_KILLS=all $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_scan_kills.py tests/faults/test_tracker_kills.py tests/faults/test_tracker_fetch_kills.py
	LCC_DASHBOARD_REQUESTS=10000 $(BIN)/python -m pytest -p no:randomly -s tests/component/test_dashboard_requests.py
	LCC_VIEWERS=1000 $(BIN)/python -m pytest -p no:randomly tests/integration/test_dashboard_events.py
	LCC_GROWTH=large $(BIN)/python -m pytest -p no:randomly tests/faults/test_growth.py tests/faults/test_growth_hostile.py
	LCC_CUTS=200 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_power_cuts.py
	LCC_GALERA_SECONDS=300 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_galera.py tests/faults/test_postgresql_standby.py
	$(MAKE) .corpora/prometheus
	LCC_PROMETHEUS=1 $(BIN)/python -m pytest -p no:randomly tests/integration/test_prometheus.py
	LCC_SYSTEMD=1 $(BIN)/python -m pytest -p no:randomly tests/integration/test_systemd.py
	LCC_IMAGE=1 $(BIN)/python -m pytest -p no:randomly -s tests/integration/test_container.py
	LCC_AWAY=30 $(BIN)/python -m pytest -p no:randomly tests/acceptance/test_database_away.py
	LCC_S3_DOCUMENTS=10000 LCC_S3_KILLS=20 LCC_S3_RESTARTS=5 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_object_storage.py
	LCC_MACHINE=long $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_machine_trouble.py
	LCC_FREEZES=50 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_machines_lost.py
	LCC_SILENT=3000 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_silent_crowds.py
	LCC_SLOW_CLIENTS=500 LCC_WRONG_LOGINS=1000 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_hostile_providers.py
	LCC_TLS_PUSHES=200 LCC_SIGHUPS=50 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_tls.py tests/faults/test_sighup.py
	LCC_TEST_FRONT=yes $(BIN)/python -m pytest -p no:randomly tests/acceptance/test_uns_alone.py tests/acceptance/test_the_whole_way.py tests/acceptance/test_bad_input.py tests/acceptance/test_removals.py tests/acceptance/test_asking_for_urls.py tests/acceptance/test_kills.py tests/acceptance/test_mended_refusals.py tests/acceptance/test_push_misses.py tests/acceptance/test_long_queue.py tests/acceptance/test_kill_refetches.py tests/acceptance/test_politeness.py tests/acceptance/test_recrawl.py
	LCC_MOVE_KILLS=50 $(BIN)/python -m pytest -p no:randomly -s --timeout 3600 tests/acceptance/test_front_move.py
	LCC_FRONT_MOVES=20000 $(BIN)/python -m pytest -p no:randomly tests/unit/test_front_moves.py
	LCC_FEED_SECONDS=60 $(BIN)/python -m pytest -p no:randomly -s tests/contract/test_following.py
	LCC_MEASURE_SECONDS=60 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_bandwidth.py
	LCC_SPELLINGS=1000 LCC_BOMBS=all $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_private_addresses.py tests/faults/test_hostile_sites.py
	LCC_PUSH_KILLS=20 $(BIN)/python -m pytest -p no:randomly -s tests/integration/test_push_http.py -k kills
	LCC_STREAMS=10000 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_mutated_streams.py
	LCC_PUSH_KILLS=20 $(BIN)/python -m pytest -p no:randomly -s tests/integration/test_lcc_push_command.py tests/component/test_lcc_push.py tests/component/test_lcc_push_init.py
	LCC_PYPI=1 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_archive_replay.py tests/integration/test_resync_client.py
	LCC_INDEXERS=all $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_indexers.py
	LCC_MANY_URLS=5000000 LCC_ENDLESS_BYTES=500000000 $(BIN)/python -m pytest -p no:randomly -s tests/faults/test_huge_sets.py
	LCC_SPIDER_SITE=.corpora/python3.11-doc/usr/share/doc/python3.11/html LCC_SPIDER_KILLS=5 $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_spidered_sites.py
	LCC_SCHEMATHESIS=long $(BIN)/python -m pytest -p no:randomly -s --timeout 3600 tests/integration/test_web_server.py -k schemathesis
	LCC_RECRAWL_SITE=.corpora/python3.11-doc/usr/share/doc/python3.11/html LCC_RECRAWL_ROUNDS=3 LCC_RECRAWL_BANDWIDTH=1M $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_recrawl.py
	LCC_MISSES_DATABASES="sqlite mariadb postgresql" $(BIN)/python -m pytest -p no:randomly -s tests/acceptance/test_push_misses.py
	LCC_CONVERGENCE=10 $(BIN)/python -m pytest -p no:randomly -s --timeout 3600 tests/acceptance/test_lagging_sites.py
	LCC_REAL_WEB=whole $(BIN)/python -m pytest -p no:randomly -s --timeout 3600 tests/faults/test_real_web.py

fuzz: $(DEV_STAMP) ## coverage-guided fuzzing, LCC_FUZZ_SECONDS (60) for each reader of hostile input
	$(BIN)/python -m pip install -q -e '.[fuzz]'
	for target in $(FUZZ_TARGETS); do \
		$(BIN)/python -m tests.fuzz.run $$target -max_total_time=$(LCC_FUZZ_SECONDS) -print_final_stats=1 || exit 1; \
	done

mutants: $(DEV_STAMP) ## break the rules one line at a time, and see which changes the tests do not notice; an hour or so
	$(BIN)/python tools/mutants.py $(MUTANTS)

LOCKED = $(BIN)/pip-compile --quiet --upgrade --generate-hashes --strip-extras --no-emit-options --no-annotate \
	--no-header --unsafe-package lcc-scrapy

lock: $(DEV_STAMP) ## choose the versions anew that CI and the image install, with the digests of their files
	$(BIN)/python -m pip install -q 'pip-tools>=7.5'
	$(LOCKED) --extra dev --output-file requirements-dev.lock pyproject.toml
	$(LOCKED) --extra web --extra redis --output-file contrib/compose/requirements.lock pyproject.toml
	sed -i '/^#/d; /^$$/d' requirements-dev.lock contrib/compose/requirements.lock

behind: ## tell which of these versions have a newer one, and fail if any has; for a weekly job
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) -m venv "$$folder" \
		&& "$$folder"/bin/python -m pip install -q --no-deps --require-hashes -r requirements-dev.lock \
		&& "$$folder"/bin/python -m pip list --outdated --exclude pip --exclude setuptools > "$$folder"/behind \
		&& cat "$$folder"/behind && ! test -s "$$folder"/behind

dist: pyz ## what is installed elsewhere, in dist/: wheel, source archive, provider commands in one file
	$(BIN)/python -m pip install -q 'hatchling>=1.27'
	$(BIN)/python -m hatchling build -d dist

pyz: | $(BIN)/python ## dist/lcc-provider.pyz, the provider commands in one file
	$(BIN)/python tools/build_pyz.py

$(RUN_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing lcc-scrapy and what it needs into $(VENV): half a minute, or longer on a slow line."
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@ $(RUN_STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean: ## remove what was built
	rm -rf dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis demo

MIRRORS := vsftpd proftpd-core pure-ftpd libnss-wrapper apache2-bin lighttpd
SQUID := squid squid-common squid-langpack libecap3 libltdl7 libnfnetlink0 libnetfilter-conntrack3 libtdb1

corpora: .corpora/python3.11-doc .corpora/postgresql-doc-15 $(MIRRORS:%=.corpora/%) $(SQUID:%=.corpora/%) ## real documents, and servers that conflict when installed, for tests (Debian packages)

.corpora/%:
	mkdir -p .corpora && cd .corpora && apt-get download -q $* && dpkg-deb -x $*_*.deb $*.part && mv $*.part $* && rm $*_*.deb
