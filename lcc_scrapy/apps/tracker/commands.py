"""``lcc tracker``: servers with exact replicas of each other's directories, and where a URL is to be had."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.apps.tracker.exchange_commands import export, import_
from lcc_scrapy.apps.tracker.rewrite_commands import rewrite
from lcc_scrapy.apps.tracker.scan_commands import scan, set_
from lcc_scrapy.apps.tracker.serve_commands import serve
from lcc_scrapy.apps.tracker.settings import TrackerRules
from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import FAILED, Lcc, LccGroup, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.apps.tracker.answering import Answering
    from lcc_scrapy.apps.tracker.registry import Registry
    from lcc_scrapy.apps.tracker.rules.policy import Policy
    from lcc_scrapy.apps.tracker.rules.tracked import Host, TrackedDomain
    from lcc_scrapy.apps.tracker.summing import Summary

_HIDDEN = frozenset({"owner", "claimed", "first", "site"})
_DOMAIN_COLUMNS = ("domain", "servers", "directories", "generation", "from", "checked", "error")
_SERVER_COLUMNS = ("id", "domain", "url", "directories", "files", "unsound", "listed", "by", "next", "error")


@click.group(cls=LccGroup)
def tracker() -> None:
    """Find exact replicas of files and directories on other servers.

    \b
    lcc tracker domain add de
    lcc tracker server add ftp://ftp.example.org/pub/ --domain de
    lcc tracker lookup ftp://ftp.example.org/pub/app/1.0/app.tar.gz
    """  # noqa: D301


@tracker.group(cls=LccGroup)
def domain() -> None:
    """Domains: servers that are tracked together, mostly those of a top-level domain.

    \b
    lcc tracker domain add de
    lcc tracker domain list
    """  # noqa: D301


@domain.command("add")
@click.argument("name", metavar="DOMAIN")
@click.option("--peer", default="", metavar="URL", help="The tracker from which all of the domain comes.")
@pass_lcc
def add_domain(lcc: Lcc, *, name: str, peer: str) -> None:
    """Add DOMAIN; its servers are added one by one, or come from another tracker.

    \b
    lcc tracker domain add de
    lcc tracker domain add uk --peer https://tracker.example.org/
    """  # noqa: D301
    with _registry(lcc) as registry:
        made = registry.add_domain(name, int(time.time()), peer)
    click.echo(f"domain {made.domain}{f' from {made.peer}' if made.peer else ''}")


@domain.command("list")
@printing.json_option
@pass_lcc
def list_domains(lcc: Lcc, *, as_json: bool) -> None:
    """List the domains.

    \b
    lcc tracker domain list
    lcc tracker domain list --json
    """  # noqa: D301
    with _registry(lcc) as registry:
        facts = _domain_facts(registry)
    _print_domains(facts, as_json=as_json)


@domain.command("remove")
@click.argument("name", metavar="DOMAIN")
@pass_lcc
def remove_domain(lcc: Lcc, *, name: str) -> None:
    """Remove DOMAIN with all of its servers.

    \b
    lcc tracker domain remove de
    """  # noqa: D301
    with _registry(lcc) as registry:
        gone = registry.remove_domain(name)
        _clear(registry)
    click.echo(f"domain {gone.domain} removed")


@tracker.group(cls=LccGroup)
def server() -> None:
    """Servers of this tracker's own domains.

    \b
    lcc tracker server add ftp://ftp.example.org/ --domain de
    lcc tracker server list
    """  # noqa: D301


server.add_command(set_)
tracker.add_command(scan)
tracker.add_command(export)
tracker.add_command(import_)
tracker.add_command(serve)
tracker.add_command(rewrite)


@server.command("add")
@click.argument("url")
@click.option("--domain", "domain_", required=True, metavar="DOMAIN", help="The domain of the server.")
@pass_lcc
def add_server(lcc: Lcc, *, url: str, domain_: str) -> None:
    """Add the server whose base is at URL: ftp, http, https or rsync.

    \b
    lcc tracker server add ftp://ftp.example.org/ --domain de
    lcc tracker server add https://mirror.example.org/debian/ --domain de
    """  # noqa: D301
    with _registry(lcc) as registry:
        made = registry.add_server(url, domain_, int(time.time()))
    click.echo(f"server {made.hostid} of domain {made.domain}: {made.url}")


@server.command("list")
@click.argument("domain_", metavar="[DOMAIN]", required=False)
@printing.json_option
@pass_lcc
def list_servers(lcc: Lcc, *, domain_: str | None, as_json: bool) -> None:
    """List the servers of DOMAIN, or all.

    \b
    lcc tracker server list
    lcc tracker server list de --json
    """  # noqa: D301
    with _registry(lcc) as registry:
        found = registry.servers(domain_)
    if as_json:
        printing.json_list(map(_server_facts, found))
    elif not printing.table(_SERVER_COLUMNS, map(_server_row, found)):
        printing.note("no servers yet: `lcc tracker server add URL --domain DOMAIN`")


@server.command("remove")
@click.argument("hostid", metavar="ID", type=click.IntRange(1))
@pass_lcc
def remove_server(lcc: Lcc, *, hostid: int) -> None:
    """Remove server ID and all that is known of it.

    \b
    lcc tracker server remove 3
    """  # noqa: D301
    with _registry(lcc) as registry:
        gone = registry.remove_server(hostid)
        _clear(registry)
    click.echo(f"server {gone.hostid} removed: {gone.url}")


@tracker.command()
@printing.json_option
@pass_lcc
def status(lcc: Lcc, *, as_json: bool) -> None:
    """Show domains, and how many servers and directories each has.

    \b
    lcc tracker status
    lcc tracker status --json
    """  # noqa: D301
    with _registry(lcc) as registry:
        facts = _domain_facts(registry)
    _print_domains(facts, as_json=as_json)


@tracker.command()
@click.argument("url")
@click.option("--tld", multiple=True, metavar="DOMAIN", help="Replicas in this domain only; may be repeated.")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", help="At most N replicas.")
@printing.json_option
@pass_lcc
def lookup(lcc: Lcc, *, url: str, tld: tuple[str, ...], limit: int | None, as_json: bool) -> None:
    """Print URLs of exact replicas of the file or directory at URL, best first.

    A directory's URL ends with "/". Exit status 1 when no replica is known.

    \b
    lcc tracker lookup ftp://ftp.example.org/pub/app/1.0/app.tar.gz
    lcc tracker lookup ftp://ftp.example.org/pub/app/1.0/ --tld de --limit 3
    """  # noqa: D301
    with _answering(lcc) as answering:
        found = answering.of_url(url, "", tld, limit).found
    if as_json:
        printing.as_json({"url": url, **asdict(found)})
    else:
        for one in found.replicas:
            click.echo(one.url)
    if not found.replicas:
        printing.note("no replicas" if found.known else "no server that is tracked has this URL")
        sys.exit(FAILED)


@tracker.command()
@click.argument("url")
@click.option("--from", "address", required=True, metavar="IP", help="The address of whoever asks.")
@click.option("--tld", multiple=True, metavar="DOMAIN", help="As for `lcc tracker lookup`.")
@printing.json_option
@pass_lcc
def explain(lcc: Lcc, *, url: str, address: str, tld: tuple[str, ...], as_json: bool) -> None:
    """Show how URL is looked up for somebody at an address: policy, walk, result.

    \b
    lcc tracker explain ftp://ftp.example.org/pub/app/1.0/app.tar.gz --from 192.0.2.7
    lcc tracker explain ftp://ftp.example.org/pub/app/ --from 2001:db8::1 --json
    """  # noqa: D301
    with _answering(lcc) as answering:
        network, rules = answering.policy.explained(address)
        found = answering.of_url(url, address, tld).found
    facts = {"url": url, "from": address, "network": network or "others", **asdict(rules), **asdict(found)}
    if as_json:
        printing.as_json(facts)
        return
    printing.facts((name, _shown(facts[name])) for name in ("network", *asdict(rules)))
    for step in found.steps:
        click.echo(f"{printing.plain(step.url)}  {step.replicas or 'no'} replicas")
    printing.table(("replica", "domain", "listed"), [_replica_row(one) for one in found.replicas])
    if not found.replicas:
        printing.note("no replicas" if found.known else "no server that is tracked has this URL")


@tracker.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--plain", is_flag=True, help="By the files of each directory only, without subdirectories.")
@printing.json_option
def sums(*, folder: Path, plain: bool, as_json: bool) -> None:
    """Print the identities of DIR and of all directories in it, as the tracker makes them.

    The first is the MD5 of `urn:x-tracker`, the second SHA-256. A directory that cannot be read has
    none, nor has any above it.

    \b
    lcc tracker sums /srv/ftp/pub
    lcc tracker sums /srv/ftp/pub --plain
    """  # noqa: D301
    from lcc_scrapy.apps.tracker.local import listing
    from lcc_scrapy.apps.tracker.spool import visible
    from lcc_scrapy.apps.tracker.summing import summed

    rows = _sums(summed(visible(listing(folder)), plain=plain))
    if as_json:
        printing.json_list({"md5": md5, "sha256": sha, "path": path} for md5, sha, path in rows)
    else:
        printing.table(("md5", "sha256", "path"), rows)


@contextmanager
def _registry(lcc: Lcc) -> "Iterator[Registry]":
    from lcc_scrapy.apps.tracker.registry import Registry

    with lcc.store() as store:
        yield Registry(store)


def _clear(registry: "Registry") -> None:
    from lcc_scrapy.apps.tracker.loading import clear

    clear(registry.store, time.time())


def _policy(lcc: Lcc) -> "Policy":
    from lcc_scrapy.apps.tracker.policy import read_policy

    return read_policy(lcc.config.of(TrackerRules).policy_file)


@contextmanager
def _answering(lcc: Lcc) -> "Iterator[Answering]":
    from lcc_scrapy.apps.tracker.answering import Answering

    policy = _policy(lcc)
    with lcc.store() as store:
        yield Answering(store, policy, lcc.config.of(TrackerRules).replicas)


def _domain_facts(registry: "Registry") -> list[dict[str, Any]]:
    return [_facts_of(one, registry.servers(one.domain)) for one in registry.domains()]


def _facts_of(one: "TrackedDomain", its: "list[Host]") -> dict[str, Any]:
    return {
        "domain": one.domain,
        "servers": len(its),
        "directories": sum(host.dirs for host in its),
        "generation": one.generation,
        "from": one.peer,
        "checked": one.checked,
        "error": one.error or ", ".join(str(host.hostid) for host in its if host.error),
    }


def _print_domains(facts: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        printing.as_json(facts)
        return
    rows = [
        (*one.values(),) for one in ({**fact, "checked": printing.moment(fact["checked"])} for fact in facts)
    ]
    if not printing.table(_DOMAIN_COLUMNS, rows):
        printing.note("no domains yet: `lcc tracker domain add DOMAIN`")


def _server_facts(one: "Host") -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name not in _HIDDEN}


def _server_row(one: "Host") -> tuple[object, ...]:
    listed, due = printing.moment(one.scanned) or "never", printing.moment(one.due)
    numbers = (one.dirs, one.files, one.unsound)
    return (one.hostid, one.domain, one.url, *numbers, listed, one.adapter, due, one.error)


def _replica_row(one: Any) -> tuple[object, ...]:
    return one.url, one.domain, printing.moment(one.scanned)


def _shown(value: object) -> object:
    return (", ".join(value) or "any") if isinstance(value, tuple) else value


def _sums(summary: "Summary") -> Iterator[tuple[str, str, str]]:
    for path, identity in summary.identities():
        shown = "/".join(one.decode("utf-8", "backslashreplace") for one in path)
        md5, sha = (identity.md5.hex(), identity.sha.hex()) if identity else ("-", "-")
        yield md5, sha, f"./{shown}" if shown else "."
