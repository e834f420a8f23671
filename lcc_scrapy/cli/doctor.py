"""``lcc doctor``: whether this machine is fit to run the LCC."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import FAILED, Lcc
from lcc_scrapy.domain.errors import LccError

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.ops.doctor import Finding


_SAMPLE = 100
"""Documents and errors of a provider that are looked at; by their keys, which are digests."""


@click.command()
@printing.json_option
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Check settings, rights, disks, database, clock, ports, names and certificates.

    One line for each finding; nothing is changed. Exit status 0: no problem, perhaps warnings; 1: a problem.

    \b
    lcc doctor
    lcc doctor --json
    """  # noqa: D301
    from lcc_scrapy.ops.doctor import State

    lcc = ctx.find_object(Lcc)
    assert lcc is not None
    found = []
    for finding in _findings(lcc):
        found.append(finding)
        if not as_json:
            click.echo(f"{finding.state:8} {finding.check}: {printing.plain(finding.text)}")
    if as_json:
        printing.as_json([asdict(finding) for finding in found])
    ctx.exit(FAILED if any(finding.state is State.PROBLEM for finding in found) else 0)


def _findings(lcc: Lcc) -> Iterator["Finding"]:
    from lcc_scrapy.content.store import factory_of
    from lcc_scrapy.ops.doctor import Finding, State, certificates, problem

    try:
        config = lcc.config
        factory_of(config.content_url, config.apps)
        for group in config.apps.parts("settings"):
            config.of(group)
    except LccError as error:
        yield problem("settings", error)
        return
    yield Finding("settings", State.OK, "all can be read")
    yield from _of_machine(config)
    yield from _redis(config)
    store: SqlStore | None = None
    with ExitStack() as opened:
        try:
            store = opened.enter_context(lcc.store())
            yield from _of_database(lcc, store)
            yield from _browser(lcc.config, store)
        except LccError as error:
            store = None
            yield problem("database", error)
        yield from certificates(config.uns_listen.endpoints)
        yield from _of_apps(lcc, store)


def _of_apps(lcc: Lcc, store: "SqlStore | None") -> Iterator["Finding"]:
    from lcc_scrapy.ops.doctor import Finding, State, problem

    for line in lcc.config.apps.lacking():
        yield Finding("apps", State.WARNING, line)
    for check in lcc.config.apps.parts("checks"):
        try:
            yield from check(lcc.config, store, lambda: lcc.settings)
        except LccError as error:
            yield problem("apps", error)


def _of_machine(config: "Config") -> Iterator["Finding"]:
    from lcc_scrapy.app.opening import disks_of
    from lcc_scrapy.ops import doctor as checks

    folders = {"LCC_DATA_DIR": config.data_dir, "LCC_CONTENT_DIR": config.content_dir}
    yield from checks.folders({**folders, "LCC_SPOOL_DIR": config.spool_dir})
    yield from checks.secret_files(_secret_files(config))
    yield from checks.credentials(config.credentials_file, time.time())
    if config.data_dir.is_dir():
        yield from checks.disks(disks_of(config, config.content_dir, config.spool_dir))
    yield checks.open_files(config.uns_listen.connections_max)


def _redis(config: "Config") -> Iterator["Finding"]:
    from lcc_scrapy.machine import wake_redis
    from lcc_scrapy.ops import doctor as checks

    if config.wake_redis:
        try:
            yield checks.redis("LCC_WAKE_REDIS", wake_redis.client_of(config.wake_redis))
        except LccError as error:
            yield checks.problem("redis", error)


def _secret_files(config: "Config") -> dict[str, str]:
    named = {
        "LCC_DATABASE_URL_FILE": config.database_url_file,
        "LCC_READ_DATABASE_URL_FILE": config.read_database_url_file,
        "LCC_FILES_TOKEN_FILE": config.files_token_file,
        "LCC_MAIL_PASSWORD_FILE": config.mail.password_file,
        "LCC_CREDENTIALS_FILE": config.credentials_file,
    }
    return {name: file for name, file in named.items() if file}


def _of_database(lcc: Lcc, store: "SqlStore") -> Iterator["Finding"]:
    from lcc_scrapy.app.opening import check_files, machine_number
    from lcc_scrapy.ops import doctor as checks
    from lcc_scrapy.providers.registration import all_providers

    database = store.describe()
    yield from checks.clock(database.time)
    yield checks.Finding("database", checks.State.OK, database.what)
    for doubt in database.doubts:
        yield checks.Finding("database", checks.State.WARNING, doubt)
    try:
        number = machine_number(lcc.config, store)
    except LccError as error:
        yield checks.problem("machine", error)
    else:
        yield checks.Finding("machine", checks.State.OK, f"number {number}")
    try:
        check_files(lcc.config, store)
    except LccError as error:
        yield checks.problem("database", error)
    yield from _ports(lcc.config)
    yield from checks.names(_hosts(store))
    yield from checks.mismatches(all_providers(store))
    yield from _former_names(store)


def _browser(config: "Config", store: "SqlStore") -> Iterator["Finding"]:
    """Start the browser where pages of some provider are to be rendered."""
    from lcc_scrapy.domain.providers import Render
    from lcc_scrapy.ops.doctor import Finding, State, problem
    from lcc_scrapy.providers.registration import all_providers
    from lcc_scrapy.rendering.page import NoBrowser

    if not any(one.render == Render.YES for one in all_providers(store)):
        return
    try:
        yield Finding("browser", State.OK, f"Chromium {asyncio.run(_version(config))}")
    except NoBrowser as error:
        yield problem("browser", error)


async def _version(config: "Config") -> str:
    from lcc_scrapy.rendering.renderer import browser

    one = browser(lambda: config.render, lambda: config.memory_body)
    try:
        return await one.version()
    finally:
        await one.close()


def _ports(config: "Config") -> Iterator["Finding"]:
    from lcc_scrapy.listeners.tls import address_of
    from lcc_scrapy.machine.data_directory import lock_holder
    from lcc_scrapy.ops import doctor as checks

    runs = lock_holder(config.spool_dir / "lock") is not None
    for endpoint in config.uns_listen.endpoints:
        address = address_of(endpoint.removeprefix("haproxy:"))
        if address is not None:
            yield checks.port(*address, expected=runs)


def _hosts(store: "SqlStore") -> list[tuple[str, bool]]:
    """Return some hosts of roots, and whether each may have private addresses."""
    from lcc_scrapy.domain.roots import Root
    from lcc_scrapy.ops.doctor import NAMES
    from lcc_scrapy.providers.registration import pages

    found: dict[str, bool] = {}
    for page in islice(pages(store), 1):
        with store.read() as tx:
            roots = tx.roots_of([provider.pid for provider in page])
        for provider in page:
            for root in roots.get(provider.pid, ()):
                host = Root.parse(root).url.host
                found[host] = found.get(host, False) or provider.allowprivate
    return list(islice(found.items(), NAMES))


def _former_names(store: "SqlStore") -> Iterator["Finding"]:
    """Look at some documents and errors of some providers: does the name of a site mean another root now?"""
    from lcc_scrapy.domain.roots import Root
    from lcc_scrapy.ops.doctor import former_names
    from lcc_scrapy.providers.registration import pages

    for page in islice(pages(store), 1):
        for pid in (provider.pid for provider in page):
            with store.read() as tx:
                roots = tuple(map(Root.parse, tx.roots(pid)))
                urls = [row.curl for row in tx.cached_of(pid, b"", _SAMPLE)]
                urls += [error.url for error in tx.errors(pid, _SAMPLE)]
            yield from former_names(pid, roots, urls)
