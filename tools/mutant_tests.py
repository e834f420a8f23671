# ruff: noqa: INP001 - tools are no package
"""What tools/mutants.py mutates, which tests have to notice, and which mutants nobody can notice."""

NO_DATABASE = ("-k", "not sqlite and not mariadb and not postgresql")
"""Contract tests on the store in memory only; and tests that need none."""

NO_SERVER = ("-k", "not mariadb and not postgresql")
"""Contract tests on SQLite only."""

TESTS = {
    "lcc_scrapy/annotation/interests.py": ("tests/contract/test_interests.py", *NO_DATABASE),
    "lcc_scrapy/annotation/percolator.py": ("tests/unit/test_annotation_percolator.py",),
    "lcc_scrapy/annotation/profile_feed.py": ("tests/contract/test_interests.py", *NO_DATABASE),
    "lcc_scrapy/annotation/try_out.py": ("tests/component/test_urd_routes.py",),
    "lcc_scrapy/annotation/urd_routes.py": ("tests/component/test_urd_routes.py",),
    "lcc_scrapy/cache/delete_manager.py": ("tests/contract/test_delete_manager.py", *NO_DATABASE),
    "lcc_scrapy/cache/file_ids.py": (
        "tests/contract/test_leftovers.py",
        "tests/component/test_store_trouble.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/cache/full_set_requests.py": ("tests/contract/test_full_set_requests.py", *NO_DATABASE),
    "lcc_scrapy/cache/last_outcomes.py": (
        "tests/contract/test_settlement.py",
        "tests/contract/test_refusals.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/cache/leftovers.py": ("tests/contract/test_leftovers.py", *NO_DATABASE),
    "lcc_scrapy/cache/misses.py": ("tests/contract/test_misses.py", *NO_DATABASE),
    "lcc_scrapy/cache/tombstones.py": ("tests/contract/test_feed.py", *NO_DATABASE),
    "lcc_scrapy/cache/versions.py": ("tests/contract/test_versions.py", *NO_DATABASE),
    **{
        f"lcc_scrapy/queue/{name}.py": (
            "tests/component/test_queue_manager.py",
            "tests/component/test_queue_manager_leases.py",
            "tests/component/test_windows.py",
            "-m",
            "not slow",
        )
        for name in ("dispatcher", "held_turn", "queue_manager", "turn_leases")
    },
    "lcc_scrapy/queue/committing.py": (
        "tests/contract/test_settling_process.py",
        "tests/unit/test_db_thread.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/queue/expiry.py": ("tests/contract/test_expiry.py", *NO_DATABASE),
    "lcc_scrapy/queue/fetch_counts.py": ("tests/contract/test_fetch_counts.py", *NO_DATABASE),
    "lcc_scrapy/queue/group_commit.py": ("tests/component/test_store_trouble.py",),
    "lcc_scrapy/queue/heartbeat.py": ("tests/component/test_heartbeat.py",),
    "lcc_scrapy/queue/held_removals.py": (
        "tests/contract/test_intake.py",
        "tests/contract/test_narrowing.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/queue/leases.py": (
        "tests/contract/test_leases.py",
        "tests/contract/test_housekeeping_verbs.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/queue/settlement.py": (
        "tests/contract/test_settlement.py",
        "tests/contract/test_spidering_use_cases.py",
        "tests/contract/test_misses.py",
        "tests/contract/test_fetch_counts.py",
        "tests/contract/test_lock_order.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/queue/unit_of_work.py": (
        "tests/contract/test_settlement.py",
        "tests/contract/test_intake.py",
        "tests/contract/test_spidering_use_cases.py",
        "tests/contract/test_fetch_again.py",
        "tests/contract/test_misses.py",
        "tests/contract/test_feed.py",
        "tests/contract/test_leases.py",
        "tests/contract/test_lock_order.py",
        "tests/contract/test_small_sets.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/queue/visits.py": ("tests/contract/test_spidering_use_cases.py", *NO_DATABASE),
    "lcc_scrapy/queue/window_rows.py": (
        "tests/contract/test_leases.py",
        "tests/component/test_windows.py",
        *NO_DATABASE,
        "-m",
        "not slow",
    ),
    "lcc_scrapy/queue/windows.py": (
        "tests/component/test_windows.py",
        "tests/component/test_queue_manager.py",
        "tests/component/test_queue_manager_leases.py",
        "-m",
        "not slow",
    ),
    "lcc_scrapy/intake/absorber.py": ("tests/component/test_absorber.py", *NO_DATABASE),
    **{
        f"lcc_scrapy/intake/{name}.py": (
            "tests/contract/test_absorbing.py",
            "tests/contract/test_intake.py",
            "tests/contract/test_arrivals.py",
            "tests/contract/test_small_sets.py",
            "tests/contract/test_logins.py",
            "tests/component/test_absorber.py",
            "tests/component/test_open_logins.py",
            *NO_DATABASE,
            "-m",
            "not slow",
        )
        for name in ("absorbing", "arrivals", "login_rows", "open_logins", "open_sets", "small_sets")
    },
    "lcc_scrapy/intake/dry_run.py": ("tests/contract/test_dry_run.py", *NO_DATABASE),
    "lcc_scrapy/intake/spooled.py": ("tests/component/test_spooled.py", *NO_DATABASE),
    "lcc_scrapy/uns/plain_urls.py": ("tests/unit/test_uns_runs.py", "tests/unit/test_uns_codec.py"),
    "lcc_scrapy/uns/session.py": ("tests/unit/test_uns_session.py",),
    "lcc_scrapy/uns/spool.py": ("tests/unit/test_uns_spool.py",),
    "lcc_scrapy/uns/spool_file.py": ("tests/unit/test_uns_spool.py", "tests/unit/test_uns_runs.py"),
    "lcc_scrapy/uns/spool_writer.py": ("tests/unit/test_uns_spool.py", "tests/unit/test_uns_runs.py"),
    "lcc_scrapy/uns/codec.py": ("tests/unit/test_uns_codec.py", "tests/unit/test_uns_runs.py"),
    "lcc_scrapy/uns/full_sets.py": ("tests/unit/test_uns_full_sets.py",),
    "lcc_scrapy/uns/url_validator.py": (
        "tests/unit/test_uns_url_validator.py",
        "tests/unit/test_uns_session.py",
        "tests/unit/test_uns_runs.py",
        "tests/component/test_store_trouble.py",
        "tests/contract/test_refusals.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/uns/deadlines.py": (
        "tests/component/test_uns_limits.py",
        "tests/component/test_uns_protocol.py",
    ),
    "lcc_scrapy/uns/outbox.py": (
        "tests/component/test_uns_limits.py",
        "tests/component/test_uns_protocol.py",
    ),
    "lcc_scrapy/uns/set_receiver.py": (
        "tests/component/test_uns_protocol.py",
        "tests/component/test_uns_limits.py",
    ),
    "lcc_scrapy/domain/absorption.py": ("tests/unit/test_domain_absorption.py",),
    "lcc_scrapy/domain/addresses.py": ("tests/unit/test_domain_addresses.py",),
    "lcc_scrapy/domain/bandwidth.py": (
        "tests/unit/test_domain_bandwidth.py",
        "tests/unit/test_domain_turns.py",
    ),
    "lcc_scrapy/domain/breaker.py": ("tests/unit/test_domain_breaker.py",),
    "lcc_scrapy/domain/confirmation.py": ("tests/unit/test_domain_confirmation.py",),
    "lcc_scrapy/domain/cursor.py": ("tests/unit/test_cli_cursor.py", "tests/unit/test_feed_following.py"),
    "lcc_scrapy/domain/front_cursor.py": (
        "tests/unit/test_front_cursor.py",
        "tests/unit/test_front_moves.py",
    ),
    "lcc_scrapy/domain/front_moves.py": ("tests/unit/test_front_moves.py",),
    "lcc_scrapy/front/feed.py": ("tests/component/test_front_feed.py",),
    "lcc_scrapy/front/rows.py": ("tests/component/test_front_feed.py",),
    "lcc_scrapy/domain/entries.py": ("tests/unit/test_domain_entries.py",),
    "lcc_scrapy/domain/headers.py": ("tests/unit/test_domain_headers.py",),
    "lcc_scrapy/domain/http_dates.py": ("tests/unit/test_domain_http_dates.py",),
    "lcc_scrapy/domain/failure_detector.py": ("tests/unit/test_domain_absorption.py",),
    "lcc_scrapy/domain/misses.py": ("tests/unit/test_domain_misses.py",),
    "lcc_scrapy/domain/notations.py": ("tests/unit/test_domain_notations.py", "tests/unit/test_config.py"),
    "lcc_scrapy/domain/settings.py": ("tests/unit/test_config.py",),
    "lcc_scrapy/domain/slots.py": ("tests/unit/test_domain_slots.py",),
    "lcc_scrapy/domain/queue.py": (
        "tests/unit/test_domain_queue.py",
        "tests/contract/test_settlement.py",
        "tests/contract/test_intake.py",
        "tests/contract/test_spidering_use_cases.py",
        *NO_DATABASE,
    ),
    "lcc_scrapy/domain/providers.py": ("tests/unit/test_domain_quota.py",),
    "lcc_scrapy/domain/removal_guard.py": ("tests/unit/test_domain_removal_guard.py",),
    "lcc_scrapy/domain/restarts.py": ("tests/unit/test_domain_restarts.py",),
    "lcc_scrapy/domain/retries.py": ("tests/unit/test_domain_retries.py", "tests/unit/test_domain_turns.py"),
    "lcc_scrapy/domain/revisits.py": ("tests/unit/test_domain_revisits.py",),
    "lcc_scrapy/domain/robots.py": ("tests/unit/test_domain_robots.py",),
    "lcc_scrapy/domain/robots_rules.py": (
        "tests/unit/test_domain_robots_rules.py",
        "tests/unit/test_links_ignoring.py",
    ),
    "lcc_scrapy/domain/roots.py": ("tests/unit/test_domain_roots.py",),
    "lcc_scrapy/domain/runs.py": ("tests/unit/test_uns_runs.py",),
    "lcc_scrapy/domain/sent.py": ("tests/unit/test_domain_sent.py",),
    "lcc_scrapy/domain/shares.py": ("tests/unit/test_domain_shares.py",),
    "lcc_scrapy/domain/dynamic_threshold.py": ("tests/unit/test_domain_absorption.py",),
    "lcc_scrapy/domain/throttling.py": ("tests/unit/test_domain_throttling.py",),
    "lcc_scrapy/domain/timeslots.py": ("tests/unit/test_domain_timeslots.py",),
    "lcc_scrapy/domain/turn_states.py": ("tests/unit/test_domain_turn_states.py",),
    "lcc_scrapy/domain/turn.py": ("tests/unit/test_domain_turns.py",),
    "lcc_scrapy/domain/turns.py": ("tests/unit/test_domain_turns.py",),
    "lcc_scrapy/domain/urd_rules.py": ("tests/unit/test_domain_urd_rules.py",),
    "lcc_scrapy/domain/fair_queue.py": ("tests/unit/test_domain_throttling.py",),
    **{
        f"lcc_scrapy/apps/tracker/{name}.py": (
            "tests/contract/test_tracker_loading.py",
            "tests/contract/test_tracker_lookup.py",
            "tests/component/test_tracker_exports.py",
            "tests/unit/test_tracker_paths.py",
            *NO_SERVER,
        )
        for name in ("exchange", "importing", "loading", "lookup", "registry")
    },
    **{
        f"lcc_scrapy/apps/tracker/{name}.py": (
            "tests/unit/test_tracker_listings.py",
            "tests/unit/test_tracker_summing.py",
            "tests/unit/test_tracker_adapters.py",
        )
        for name in (
            "entries",
            "identity",
            "index_pages",
            "listings",
            "manifests",
            "mlsd",
            "spool",
            "summing",
        )
    },
    "lcc_scrapy/apps/tracker/robot.py": ("tests/component/test_tracker_robot.py",),
    "lcc_scrapy/apps/tracker/tasks.py": ("tests/contract/test_tracker_tasks.py", *NO_SERVER),
}
"""Modules that are mutated, each with the tests that have to notice: arguments of pytest."""

EQUIVALENT: dict[str, dict[str, str]] = {
    "lcc_scrapy/domain/breaker.py": {
        "__init__: deleted: self._is_probing = False": "it is set before it is asked for in a pause",
        "passed: (None, 0, False, False): False -> True": "it is set again when the next pause begins",
    },
    "lcc_scrapy/domain/throttling.py": {
        "has: pid is not None and address in self._known.get(pid, ()): without pid is not None": (
            "nobody without a number has logged in"
        ),
    },
    "lcc_scrapy/annotation/interests.py": {
        "add: deleted: tx.lock_urds()": "the store in memory has one writer",
        "change: deleted: tx.lock_urds()": "the store in memory has one writer",
        "remove: deleted: tx.lock_urds()": "the store in memory has one writer",
        "take_in: deleted: tx.lock_urds()": "the store in memory has one writer",
        "_withdraw: if owners -> if True": "nobody is withdrawn in vain",
    },
    "lcc_scrapy/annotation/profile_feed.py": {
        "profile_changes: if tx.urd_revision() == seen -> if False": "it spares a longer look",
        "_changes: seen > newest: Gt -> GtE": "who has seen the newest is answered before",
    },
    "lcc_scrapy/annotation/try_out.py": {
        "run: self.clock() > end: Gt -> GtE": "the time is over at that moment as well",
    },
    "lcc_scrapy/annotation/urd_routes.py": {
        "urd: before.urdid if before else 0: 0 -> 1": "a new URD gets its number from the store",
        "remove: return Response(status_code=HTTPStatus.NO_CONTENT) -> return None": "FastAPI answers alike",
    },
    "lcc_scrapy/apps/tracker/loading.py": {
        "_still_ours: lock=True: True -> False": "SQLite has one writer",
        "show: lock=True: True -> False": "SQLite has one writer",
        "_raise_generation: lock=True: True -> False": "SQLite has one writer",
        "clearing: lock=True: True -> False": "SQLite has one writer",
    },
    "lcc_scrapy/apps/tracker/lookup.py": {
        "_way: if host.links -> if True": "it spares a question",
        "_way: _LINKS if host.links else 0: 0 -> 1": "where no link is, none is found",
        "_offered: its.md5 is None or its.sha is None: Or -> And": "both are known, or none",
        "_offered: host.digests and offered: And -> Or": "it spares a comparison",
        "_offered: if host.digests and offered -> if True": "it spares a comparison",
        "shown: if directories -> if True": "it spares a question",
        "child: upto - first > NARROW: Gt -> GtE": "one way or the other, a name is found",
        "child: if upto > first -> if True": "it spares a question",
        "child: upto > first: Gt -> GtE": "it spares a question",
    },
    "lcc_scrapy/apps/tracker/tasks.py": {
        "claim_due: if not (rows.due_hosts_of(domain, due_by, 1) or rows.claimed_hosts(now)) -> if False": (
            "it spares a transaction that writes"
        ),
        "_claiming: deleted: tx.take(HOSTID, 0)": "SQLite has one writer",
        "_own: lock=True: True -> False": "SQLite has one writer",
    },
    "lcc_scrapy/domain/bandwidth.py": {
        "may_start_at: self.ready_at - AHEAD if self.limit else 0.0: 0.0 -> 1.0": (
            "the first second of 1970 is over as well"
        ),
        "allotments: left > 0: 0 -> 1": "one byte per second more is divided, or is not",
        "allotments: left > 0: Gt -> GtE": "where nothing is left, the shares stay as they are",
        "change: self.ready_at > now: Gt -> GtE": "at that moment nothing is owed",
        "allotments: not open_ and left > 0: without left > 0": "shares are scaled by 1 then",
    },
    "lcc_scrapy/domain/retries.py": {
        "host_delay: min(failures - 1, 16): 16 -> 17": "the longest wait is reached before",
    },
    "lcc_scrapy/domain/slots.py": {
        "is_open: if self._common -> if True": "the sum of none is 0",
    },
    "lcc_scrapy/domain/entries.py": {
        "read_entry: if curl == where and 'burl' not in attributes -> if False": "reads an equal URL again",
    },
    "lcc_scrapy/domain/roots.py": {
        "parse: if plain is not None and len(text) <= URL_MAX -> if False": "the thorough way reads it alike",
        "parse: len(text) <= URL_MAX: LtE -> Lt": "the thorough way reads it alike",
        "_quoted: if _NEEDS_NO_QUOTING.fullmatch(text) -> if False": "quoting leaves it as it is",
        "_address_v6: if address.ipv4_mapped is None -> if True": "CPython 3.11 and 3.12 write it alike",
        "_plain_path: if not _LOOKS_ODD.search(path) -> if False": "decoding leaves it as it is",
    },
    "lcc_scrapy/domain/robots_rules.py": {
        "matches: path is query: Is -> IsNot": "where both are one, the second comparison is left out",
        "matches: self.path is self.query: Is -> IsNot": "a target of one spelling has no query",
        "allows: if not _PLAIN.fullmatch(target) -> if True": "the normal form of a plain one is itself",
        "allows: rule.rank <= best: LtE -> Lt": "a rule of the same rank says the same",
        "take: if query == path -> if False": "makes an equal pattern",
        "_raise: ranks.get(text, 0): 0 -> 1": "no rule has a rank below 2",
        "_normal: if _PLAIN.fullmatch(text) -> if False": "the normal form of a plain one is itself",
    },
    "lcc_scrapy/domain/timeslots.py": {
        "intersect: strict=True: True -> False": "both are of one length by then",
        "_fit: len(bits) == HOURS_PER_DAY and slots == HOURS_PER_WEEK: without slots == HOURS_PER_WEEK": (
            "there are 24 or 168 slots, and a mask of as many is returned before"
        ),
        "next_permitted: 4 * (HOURS_PER_WEEK + 2 * HOURS_PER_DAY): 4 -> 5": (
            "what opens at all does so within nine days"
        ),
        "next_permitted: if never_opens(mask) -> if False": "two weeks of closed hours end at infinity too",
        "next_permitted: return float('inf') -> return None": "what opens at all does so within nine days",
    },
    "lcc_scrapy/cache/delete_manager.py": {
        "_again: (0, 0.0): 0 -> 1": "a step that failed has no backlog, whether it deleted none or one",
        "_again: (0, 0.0): 0.0 -> 1.0": "without a backlog nobody asks how long a step took",
    },
    "lcc_scrapy/cache/file_ids.py": {
        "new_token: randbits(_TOKEN_BITS) + 1: Add -> Sub": "-1 and 0 are two of 2**62 tokens",
        "release: if over -> if True": "a transaction that drops nothing",
    },
    "lcc_scrapy/queue/dispatcher.py": {
        "_next_usable: turn is None or not self._hand_out(ticket, turn, now): without turn is None": (
            "tickets come from turns that are held; the condition is for the type"
        ),
        "_is_to_be_fetched: again < NEVER: Lt -> LtE": "to look by NEVER asks for nothing",
        "_is_to_be_fetched: if again < NEVER -> if True": "to look by NEVER asks for nothing",
        "_settled: if result.result != settlement.DELAYED -> if True": "reads a window again that is right",
    },
    "lcc_scrapy/queue/held_turn.py": {
        "hand_out: if self.is_being_read() -> if True": "what was handed out is forgotten when a read begins",
    },
    "lcc_scrapy/queue/turn_leases.py": {
        "_unregistered: self._leased_until = 0.0: 0.0 -> 1.0": "the first second of 1970 is over as well",
        "_agree: deleted: self.turns.requeue(turn, self.time.now())": (
            "every turn whose members change is read again, which queues it anew"
        ),
        "give_back_if_idle: 0.0 if turn.is_leaving() or turn.window else turn.look_at: 0.0 -> 1.0": (
            "the first second of 1970 is over as well"
        ),
    },
    "lcc_scrapy/cache/leftovers.py": {
        "_step: next(steps, False): False -> True": "what is no None ends it, whatever it is",
    },
    "lcc_scrapy/domain/cursor.py": {
        "__str__: if self.began -> if True": "a cursor that says 0 reads as one that says nothing",
    },
    "lcc_scrapy/queue/held_removals.py": {
        "confirm_removals: -1: 1 -> 0": "the others of its portion are gone by then",
        "_confirm_some: if not tx.lock_providers([pid]) -> if False": "of nobody nothing is held",
    },
    "lcc_scrapy/queue/leases.py": {
        "look_around: 0 <= seen < revision: Lt -> LtE": "asks for changes where there are none",
        "_free_unknown: look_at=0.0: 0.0 -> 1.0": "the first second of 1970 is over as well",
    },
    "lcc_scrapy/queue/settlement.py": {
        "_as_written: if row is settled.row and waiting is None -> if False": "makes an equal result anew",
        "_served: final=True: True -> False": "the codes of mismatches are never tried again",
        "_ready: if fileid == served.fileid and answer is served.answer -> if False": "makes an equal one",
        "_ended_visits: if self._visits -> if True": "asks for no URLs",
        "_in_use: if provider.filesmax or provider.spacemax -> if True": "nobody looks at what has no limit",
    },
    "lcc_scrapy/queue/unit_of_work.py": {
        "ask_again: row.operation == queue.FETCH and row.not_before: without row.operation == queue.FETCH": (
            "a cancelled row waits for no moment"
        ),
        "_count_missed: if self._arrived -> if True": "asks for nothing",
        (
            "_flush_cache: key in self.cached and key not in self._cached_before:"
            " without key not in self._cached_before"
        ): "of what is stored there is no tombstone",
        "_flush_cache: self.policy.drop_irrelevant and fresh: without fresh": "deletes nothing",
    },
    "lcc_scrapy/queue/windows.py": {
        "_put: not taken or not is_among(one.row, taken): without not taken": "nothing is among none",
    },
    "lcc_scrapy/queue/window_rows.py": {
        "_heads: len(masks) > FEW_MASKS: Gt -> GtE": "with just so many, the part is the whole",
        "_merged: _place(row) <= min(cut): LtE -> Lt": "the row at the cut comes with the next window",
    },
    "lcc_scrapy/intake/absorbing.py": {
        "__init__: deleted: self._tells = False": "each step begins with it",
        "__init__: self._overtakes = self._overtaken = False: False -> True": "each step asks for it anew",
    },
    "lcc_scrapy/intake/arrivals.py": {
        "_queue_new: if not one.known -> if False": "of none that are known, none are listed",
        "_sorted: pid in spidered: In -> NotIn": "only databases note places; their tests notice",
    },
    "lcc_scrapy/intake/open_logins.py": {
        "_call_the_roll: (0, 0): 0 -> 1": "no pid is below 1, no login number below 1",
    },
    "lcc_scrapy/intake/open_sets.py": {
        "_absorb_together: strict=True: True -> False": "each set has its step",
    },
    "lcc_scrapy/intake/small_sets.py": {
        "_absorb: if not arriving -> if False": "of no sets, nothing is written",
        "_seen_at_once: max(1, sum((count <= absorbing.CHUNK for count in known))): 1 -> 0": (
            "one small set never has more URLs than the rules may see"
        ),
        "absorb_together: strict=True: True -> False": "each set has its step",
        "_arriving: strict=True: True -> False": "as many rows as sets are made",
        "read_small: spooled.records(0, SMALL): 0 -> 1": "byte 1 lies in the header as well",
    },
    "lcc_scrapy/uns/spool.py": {
        "__init__: deleted: self.identity = ''": "nobody asks for it before the folder is taken",
        "_claim: if not self._own[pid] -> if False": "keeps a number of 0",
    },
    "lcc_scrapy/uns/spool_file.py": {
        "record_lines: strict=True: True -> False": "the columns of a run are of one length",
    },
    "lcc_scrapy/uns/spool_writer.py": {
        "_flush: self._waiting = 0: 0 -> 1": "writes a record earlier what is written anyway",
    },
    "lcc_scrapy/domain/turn.py": {
        "free_at: self.pace.ready_at if self.pace.limit else 0.0: 0.0 -> 1.0": (
            "the first second of 1970 is over as well"
        ),
    },
    "lcc_scrapy/domain/turns.py": {
        "look_by: at < turn.look_at: Lt -> LtE": "asks for the same moment again",
        "_clear_away: 2 * len(self._turns) + STALE: Add -> Sub": "clears earlier, which costs time alone",
        "_continue: return True: True -> False": "a turn that waits already is not queued a second time",
    },
}
"""Mutants of modules that behave as the original, as tools/mutants.py names them, each with the reason."""
