"""``lcc front provider-add``: a new provider in the sub-LCC that has most room."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import password, printing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.cli.provider_options import columns, provider_options, roots, warn_of_private
from lcc_scrapy.domain.front import FrontError
from lcc_scrapy.domain.providers import Provider

if TYPE_CHECKING:
    from lcc_scrapy.front.new_providers import NewProviders, Place


@click.command("provider-add")
@click.argument("pid", type=click.IntRange(1, 10**18 - 1))
@click.option("--sub", metavar="NAME", help="The sub-LCC; without it, the least full one that answers.")
@click.option(
    "--password-file", metavar="FILE", help="Its first line is the password; - is stdin. Default: LCC_PWD."
)
@click.option(
    "--root",
    "root_urls",
    multiple=True,
    required=True,
    metavar="URL",
    help="Where its documents lie, for example http://www.example.org/; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Only say which sub-LCC would get it.")
@printing.json_option
@provider_options
@pass_lcc
def provider_add(
    lcc: Lcc,
    /,
    pid: int,
    *,
    sub: str | None,
    password_file: str | None,
    root_urls: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Register provider PID in a sub-LCC, and let the front know.

    It is `lcc provider add` for all sub-LCCs: it writes into the --database of one of them. A PID is given
    once, whatever sub-LCC it belongs to. After a kill, run the same command again.

    \b
    lcc front provider-add 7 --password-file secret --root http://www.example.org/
    lcc front provider-add 8 --sub b --password-file - --root https://www.example.net/docs/ --bandwidth 200k
    """  # noqa: D301
    values = {"fullsetsallowed": lcc.config.fullsets, **columns(given, lcc.config)}
    kept = roots(root_urls)
    fresh = Provider(pid, "", created=int(time.time()), **values)
    with _opened(lcc, pid) as providers:
        place = providers.find(pid, sub)
        if not dry_run:
            place = _add(lcc, providers, place, (fresh, kept), password.for_new_provider(password_file))
            _insist_on_the_same(place, values, kept)
    _report(place, kept, pid, dry_run=dry_run, as_json=as_json)
    warn_of_private(kept, allowed=fresh.allowprivate)


@contextmanager
def _opened(lcc: Lcc, pid: int) -> Iterator["NewProviders"]:
    from lcc_scrapy.cli.front import opened
    from lcc_scrapy.front.new_providers import NewProviders
    from lcc_scrapy.front.sub_stores import SubStores

    with opened(lcc) as directory:
        subs = directory.subs()
        with SubStores(subs, to_write=True) as stores:
            for sub in subs:
                if sub.name not in stores.stores:
                    why = stores.silent.get(sub.name, "its --database is not known (`lcc front set`)")
                    printing.note(
                        f"sub-LCC {sub.name}: {why}; it was not asked whether it has a provider {pid}"
                    )
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
