# ruff: noqa: INP001 - tools are no package
"""What tools/mutants.py mutates, which tests have to notice, and which mutants nobody can notice."""

TESTS = {
    "lcc_scrapy/queue/queue_manager.py": (
        "tests/component/test_queue_manager.py",
        "tests/component/test_queue_manager_leases.py",
    ),
    "lcc_scrapy/domain/absorption.py": ("tests/unit/test_domain_absorption.py",),
    "lcc_scrapy/domain/addresses.py": ("tests/unit/test_domain_addresses.py",),
    "lcc_scrapy/domain/bandwidth.py": (
        "tests/unit/test_domain_bandwidth.py",
        "tests/unit/test_domain_turns.py",
    ),
    "lcc_scrapy/domain/breaker.py": ("tests/unit/test_domain_breaker.py",),
    "lcc_scrapy/domain/confirmation.py": ("tests/unit/test_domain_confirmation.py",),
    "lcc_scrapy/domain/entries.py": ("tests/unit/test_domain_entries.py",),
    "lcc_scrapy/domain/headers.py": ("tests/unit/test_domain_headers.py",),
    "lcc_scrapy/domain/http_dates.py": ("tests/unit/test_domain_http_dates.py",),
    "lcc_scrapy/domain/failure_detector.py": ("tests/unit/test_domain_absorption.py",),
    "lcc_scrapy/domain/misses.py": ("tests/unit/test_domain_misses.py",),
    "lcc_scrapy/domain/slots.py": ("tests/unit/test_domain_slots.py",),
    "lcc_scrapy/domain/queue.py": ("tests/contract/test_settlement.py", "-k", "memory"),
    "lcc_scrapy/domain/quota.py": ("tests/unit/test_domain_quota.py",),
    "lcc_scrapy/domain/removal_guard.py": ("tests/unit/test_domain_removal_guard.py",),
    "lcc_scrapy/domain/restarts.py": ("tests/unit/test_domain_restarts.py",),
    "lcc_scrapy/domain/retries.py": ("tests/unit/test_domain_retries.py", "tests/unit/test_domain_turns.py"),
    "lcc_scrapy/domain/revisits.py": ("tests/unit/test_domain_revisits.py",),
    "lcc_scrapy/domain/robots.py": ("tests/unit/test_domain_robots.py",),
    "lcc_scrapy/domain/robots_rules.py": ("tests/unit/test_domain_robots_rules.py",),
    "lcc_scrapy/domain/roots.py": ("tests/unit/test_domain_roots.py",),
    "lcc_scrapy/domain/runs.py": ("tests/unit/test_uns_runs.py",),
    "lcc_scrapy/domain/sent.py": ("tests/unit/test_domain_sent.py",),
    "lcc_scrapy/domain/shares.py": ("tests/unit/test_domain_shares.py",),
    "lcc_scrapy/domain/dynamic_threshold.py": ("tests/unit/test_domain_absorption.py",),
    "lcc_scrapy/domain/throttling.py": ("tests/unit/test_domain_throttling.py",),
    "lcc_scrapy/domain/timeslots.py": ("tests/unit/test_domain_timeslots.py",),
    "lcc_scrapy/domain/turns.py": ("tests/unit/test_domain_turns.py",),
    "lcc_scrapy/domain/fair_queue.py": ("tests/unit/test_domain_throttling.py",),
    "lcc_scrapy/queue/settlement.py": ("tests/contract/test_settlement.py", "-k", "memory"),
    "lcc_scrapy/queue/leases.py": ("tests/contract/test_leases.py", "-k", "memory"),
    "lcc_scrapy/uns/session.py": ("tests/unit/test_uns_session.py",),
    "lcc_scrapy/uns/spool.py": ("tests/unit/test_uns_spool.py",),
    "lcc_scrapy/uns/spool_file.py": ("tests/unit/test_uns_spool.py",),
    "lcc_scrapy/uns/spool_writer.py": ("tests/unit/test_uns_spool.py",),
}
"""Modules that are mutated, each with the tests that have to notice: arguments of pytest."""

EQUIVALENT: dict[str, dict[str, str]] = {
    "lcc_scrapy/queue/queue_manager.py": {
        "__init__: self._wake_all = False: False -> True": "a worker that registers wakes all turns anyway",
        "__init__: deleted: self._gathering_until = NEVER": "start() sets it before there is any lease",
        "__init__: self.paused = False: False -> True": "the first look sets it before there is any lease",
        "_is_to_be_fetched: again < NEVER: Lt -> LtE": "to look by NEVER asks for nothing",
        "_rest_if_idle: held.at_rest(0.0): 0.0 -> 1.0": "the first second of 1970 is over as well",
        "_give_back: held.at_rest(0.0): 0.0 -> 1.0": "the first second of 1970 is over as well",
    },
    "lcc_scrapy/domain/turns.py": {
        "_continue: return True: True -> False": "a turn that waits already is not queued a second time",
    },
}
"""Mutants of modules that behave as the original, as tools/mutants.py names them, each with the reason."""
