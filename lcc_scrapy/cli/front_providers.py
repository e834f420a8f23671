"""``lcc front provider-add``: new providers, each in the sub-LCC that has most room."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import password, printing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.cli.provider_options import columns, from_options, provider_options, roots, warn_of_private
from lcc_scrapy.domain.front import FrontError
from lcc_scrapy.domain.providers import Provider

if TYPE_CHECKING:
    from lcc_scrapy.front.new_providers import ManyProviders, NewProviders, Place


@click.command("provider-add")
@click.argument("pid", type=click.IntRange(1, 10**18 - 1), required=False)
@click.option("--sub", metavar="NAME", help="The sub-LCC; without it, the least full one that answers.")
@click.option(
    "--password-file", metavar="FILE", help="Its first line is the password; - is stdin. Default: LCC_PWD."
)
@click.option(
    "--root",
    "root_urls",
    multiple=True,
    metavar="URL",
    help="Where its documents lie, for example http://www.example.org/; may be repeated.",
)
@from_options
@click.option("--dry-run", is_flag=True, help="Only say which sub-LCC would get it.")
@printing.json_option
@provider_options
@pass_lcc
def provider_add(
    lcc: Lcc,
    /,
    pid: int | None,
    *,
    sub: str | None,
    password_file: str | None,
    root_urls: tuple[str, ...],
    file: str | None,
    passwords_to: Path | None,
    skip_existing: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Register provider PID in a sub-LCC, or the providers of a file, and let the front know.

    It is `lcc provider add` for all sub-LCCs: it writes into the --database of one of them. A PID is given
    once, whatever sub-LCC it belongs to. After a kill, run the same command again; with --from, add
    --skip-existing, and name another file for passwords.

    \b
    lcc front provider-add 7 --password-file secret --root http://www.example.org/
    lcc front provider-add 8 --sub b --password-file - --root https://www.example.net/docs/ --bandwidth 200k
    lcc front provider-add --from providers.csv --passwords-to passwords.csv --bandwidth 1M
    """  # noqa: D301
    values = {"fullsetsallowed": lcc.config.fullsets, **columns(given, lcc.config)}
    if file is None:
        if passwords_to or skip_existing:
            raise click.UsageError("--passwords-to and --skip-existing go with --from")
        if pid is None or not root_urls:
            raise click.UsageError("name a PID and its --root, or a file with --from")
        fresh = Provider(pid, "", created=int(time.time()), **values)
        asked = _Asked(sub, password_file, dry_run=dry_run, as_json=as_json)
        _add_one(lcc, fresh, roots(root_urls), values, asked)
        return
    if pid is not None or password_file is not None or root_urls:
        raise click.UsageError("pids, roots and passwords stand in the file of --from")
    from lcc_scrapy.cli.provider_bulk import Bulk, add_from

    bulk = Bulk(file, passwords_to, skip_existing, dry_run, as_json, values)
    options = {name: option for option in provider_add.params if (name := option.name) in given}
    add_from(lcc, bulk, options, lambda: _many(lcc, sub))


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a provider is to be added."""

    sub: str | None
    password_file: str | None
    dry_run: bool
    as_json: bool


def _add_one(lcc: Lcc, fresh: Provider, kept: list[str], values: Mapping[str, object], asked: _Asked) -> None:
    pid = fresh.pid
    with _opened(lcc, f"it has a provider {pid}") as providers:
        place = providers.find(pid, asked.sub)
        if not asked.dry_run:
            secret = password.for_new_provider(asked.password_file)
            place = _add(lcc, providers, place, (fresh, kept), secret)
            _insist_on_the_same(place, values, kept)
    _report(place, kept, pid, dry_run=asked.dry_run, as_json=asked.as_json)
    warn_of_private(kept, allowed=fresh.allowprivate)


@contextmanager
def _many(lcc: Lcc, sub: str | None) -> Iterator["ManyProviders"]:
    from lcc_scrapy.front.new_providers import ManyProviders

    with _opened(lcc, "it has one of these providers") as providers:
        yield ManyProviders(providers, sub)


@contextmanager
def _opened(lcc: Lcc, what: str) -> Iterator["NewProviders"]:
    from lcc_scrapy.cli.front import opened
    from lcc_scrapy.front.new_providers import NewProviders
    from lcc_scrapy.front.sub_stores import SubStores

    with opened(lcc) as directory:
        subs = directory.subs()
        with SubStores(subs, to_write=True) as stores:
            for sub in subs:
                if sub.name not in stores.stores:
                    why = stores.silent.get(sub.name, "its --database is not known (`lcc front set`)")
                    printing.note(f"sub-LCC {sub.name}: {why}; it was not asked whether {what}")
            yield NewProviders(directory, stores)


def _add(
    lcc: Lcc, providers: "NewProviders", place: "Place", fresh: tuple[Provider, list[str]], secret: str
) -> "Place":
    """Add a provider, unless it is there with the same password; returns the place with what was there."""
    from lcc_scrapy.login.passwords import hash_password, verify_password

    provider, kept = fresh
    if place.there is None:
        provider = replace(provider, password=hash_password(secret))
        audited = partial(lcc.audited_in, action="provider add", pid=provider.pid, detail="by the front")
        place = providers.add(place, provider, kept, audited)
    if place.there is not None and not verify_password(place.there[0].password, secret):
        raise _other(place, "password")
    return place


def _insist_on_the_same(place: "Place", values: Mapping[str, object], kept: list[str]) -> None:
    """Raise ``FrontError`` where another provider was there."""
    if place.there is None:
        return
    provider, its_roots = place.there
    if its_roots != kept:
        raise _other(place, "roots")
    if others := [name for name, value in values.items() if getattr(provider, name) != value]:
        raise _other(place, others[0])


def _other(place: "Place", what: str) -> FrontError:
    assert place.there is not None
    pid = place.there[0].pid
    return FrontError(
        f"provider {pid} exists already in sub-LCC {place.sub.name}, with another {what}:"
        f" `lcc provider set {pid}` there changes it"
    )


def _report(place: "Place", kept: list[str], pid: int, *, dry_run: bool, as_json: bool) -> None:
    name, is_new = place.sub.name, place.there is None
    if as_json:
        printing.as_json(
            {"pid": pid, "sub": name, "roots": kept, "added": is_new and not dry_run, "dry_run": dry_run}
        )
    elif not is_new:
        click.echo(f"provider {pid} is in sub-LCC {name} already")
    else:
        what = "would be added" if dry_run else "added"
        click.echo(f"provider {pid} {what} in sub-LCC {name}: {', '.join(kept)}")
