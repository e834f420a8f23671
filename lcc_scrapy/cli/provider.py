"""``lcc provider``: who may push, what, how much, how fast and when."""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import fetch_counts, password, printing, push_misses, site_access
from lcc_scrapy.cli.context import Failure, Lcc, OpenGroup, pass_lcc
from lcc_scrapy.cli.provider_options import (
    OpenCommand,
    columns,
    from_options,
    provider_options,
    roots,
    warn_of_private,
)
from lcc_scrapy.cli.provider_roots import apply_roots
from lcc_scrapy.domain.audit import EVERYBODY
from lcc_scrapy.domain.providers import Provider, Render, State, Wanted, checked_reason
from lcc_scrapy.domain.revisits import bounds_of
from lcc_scrapy.domain.users import Action

if TYPE_CHECKING:
    from lcc_scrapy.cli.provider_options import ProviderOptions
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.records import Scan
    from lcc_scrapy.db.tx import Store

_PID = click.IntRange(1, 10**18 - 1)
_RENDERS = {
    Render.NEVER: "not used",
    Render.YES: "its pages are rendered",
    Render.ENDED: "not used any more: each rendition goes with the next fetch of its page",
}
_LISTED = (
    "pid", "name", "state", "priority", "documents", "space", "queued", "wanted", "last login", "roots",
)  # fmt: skip
_SHOWN = tuple(field.name for field in fields(Provider) if field.name != "password")


@click.group(cls=OpenGroup)
def provider() -> None:
    """Add, show, change and remove content providers.

    \b
    lcc provider add 7 --password-file pwd --root http://www.example.org/
    lcc provider list
    lcc provider set 7 --allow-private
    """  # noqa: D301


@provider.command()
@click.argument("pid", type=_PID, required=False)
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
@click.option("--dry-run", is_flag=True, help="With --from: only check the file.")
@click.option("--json", "as_json", is_flag=True, help="With --from: print the outcome as JSON.")
@provider_options
@pass_lcc
def add(
    lcc: Lcc,
    /,
    pid: int | None,
    *,
    password_file: str | None,
    root_urls: tuple[str, ...],
    file: str | None,
    passwords_to: Path | None,
    skip_existing: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Register a provider, or those of a file.

    A pid is never used again, even when its provider is removed. The columns of a file are named as the
    options: pid, root (several: with blanks between them), password, name, bandwidth …; options on the
    command line are for lines that say nothing else. When a line is bad, no provider is added.

    \b
    lcc provider add 7 --password-file secret --root http://www.example.org/
    lcc provider add 8 --password-file - --root https://www.example.net/docs/ \\
        --bandwidth 200k --timeofday 'mon-fri 20-06' --timezone Europe/Amsterdam
    lcc provider add --from providers.csv --passwords-to passwords.csv --bandwidth 1M
    """  # noqa: D301
    values = {"fullsetsallowed": lcc.config.fullsets, **columns(given, lcc.config)}
    if file is None:
        if passwords_to or skip_existing or dry_run or as_json:
            raise click.UsageError("--passwords-to, --skip-existing, --dry-run and --json go with --from")
        if pid is None:
            raise click.UsageError("name a PID, or a file with --from")
        _add_one(lcc, pid, password_file, root_urls, values)
        return
    if pid is not None or password_file is not None or root_urls:
        raise click.UsageError("pids, roots and passwords stand in the file of --from")
    from lcc_scrapy.cli.provider_bulk import Bulk, add_from, one_lcc

    bulk = Bulk(file, passwords_to, skip_existing, dry_run, as_json, values)
    options = {name: option for option in add.params if (name := option.name) in given}
    add_from(lcc, bulk, options, lambda: one_lcc(lcc))


def _add_one(
    lcc: Lcc, pid: int, password_file: str | None, root_urls: tuple[str, ...], values: dict[str, Any]
) -> None:
    from lcc_scrapy.login.passwords import hash_password
    from lcc_scrapy.providers import registration

    if not root_urls:
        raise click.UsageError("a provider needs a --root: everything it pushes would be refused")
    kept = roots(root_urls)
    with lcc.audited("provider add", pid) as store:
        secret = hash_password(password.for_new_provider(password_file))
        fresh = Provider(pid, secret, created=int(time.time()), **values)
        registration.add(store, fresh, kept)
    click.echo(f"provider {pid} added: {', '.join(kept)}")
    warn_of_private(kept, allowed=fresh.allowprivate)


@provider.command("list")
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, as_json: bool) -> None:
    """List all providers.

    \b
    lcc provider list
    lcc provider list --json
    """  # noqa: D301
    with lcc.store() as store:
        rooted = _rooted(store)
        if as_json:
            printing.json_list(_public(one) | {"roots": its} for one, its in rooted)
            return
        count = printing.table(_LISTED, (_row(one, its) for one, its in rooted))
    if not count:
        printing.note("no providers yet: `lcc provider add` registers one")


def _rooted(store: "Store") -> Iterator[tuple[Provider, list[str]]]:
    """Yield providers with their roots, a page in each short transaction."""
    from lcc_scrapy.providers.registration import pages

    for page in pages(store):
        with store.read() as tx:
            roots_of = tx.roots_of([one.pid for one in page])
        yield from ((one, roots_of.get(one.pid, [])) for one in page)


def _row(one: Provider, its: list[str]) -> list[object]:
    return [
        one.pid,
        one.name,
        one.state,
        one.priority,
        one.fileused,
        printing.size(one.spaceused),
        one.nurlproc,
        one.fullsetwanted,
        printing.moment(one.lastconntime),
        " ".join(its),
    ]


def _public(one: Provider) -> dict[str, Any]:
    """Return the columns of a provider, without its password's hash."""
    return {name: getattr(one, name) for name in _SHOWN}


@provider.command()
@click.argument("pid", type=_PID)
@printing.json_option
@pass_lcc
def show(lcc: Lcc, pid: int, *, as_json: bool) -> None:
    """Show everything about a provider.

    \b
    lcc provider show 7
    lcc provider show 7 --json
    """  # noqa: D301
    from lcc_scrapy.providers.registration import find
    from lcc_scrapy.queue import host_waits
    from lcc_scrapy.queue.fetch_counts import of_late

    now = time.time()
    with lcc.store() as store, store.read() as tx:
        one = find(tx, pid)
        its = tx.roots(pid)
        scan, found = tx.scan(pid), tx.count_spidered(pid)
        of_apps: dict[str, str] = {}
        for part in lcc.config.apps.parts("provider_options"):
            of_apps |= part.shown(lcc.config, tx, one)
        missed = push_misses.facts_of(tx, one, int(time.time()), lcc.config.policy.push_grace)
        fetched_of_late = of_late(tx, int(time.time()), pid)
        hosts = host_waits.failing(tx, one.turnkey)
    access = site_access.access_of(lcc.config.credentials_file, pid)
    left = one.fullsets_left(time.time(), lcc.config.policy.fullset_period)
    if as_json:
        spidered = {"at": scan.at, "pages": scan.pages, "urls": found} if scan and scan.at else None
        more = {"roots": its, "fullsetsleft": left, "spidered": spidered, "not_pushed": missed}
        more["fetched"] = fetched_of_late
        more["failing_hosts"] = list(map(host_waits.as_dict, hosts))
        printing.as_json(_public(one) | more | of_apps | {"access": site_access.facts(access)})
    else:
        samples = [("not pushed", push_misses.in_words(missed))] if missed else []
        printing.facts(
            [
                *_lines(lcc, one, its, left),
                *site_access.lines(access),
                *of_apps.items(),
                *(("waits", line) for line in host_waits.lines(hosts, now)),
                *fetch_counts.lines(fetched_of_late),
                *_spidered(scan, found),
                *samples,
            ]
        )


def _spidered(scan: "Scan | None", found: int) -> Iterable[tuple[str, object]]:
    if scan is not None and scan.at:
        last = printing.moment(scan.at)
        yield "spidered", f"{found} URLs found, {scan.pages} pages read for links, last at {last}"


def _lines(lcc: Lcc, one: Provider, its: list[str], left: int | None) -> Iterable[tuple[str, object]]:
    config, held = lcc.config, one.heldremovals
    yield "provider", one.pid
    yield "name", one.name
    yield "contact", one.contact
    yield "state", one.state
    yield from (("root", root) for root in its)
    if one.narrowing:
        yield "roots", "changed, and not all documents were looked at: `lcc provider set` once more goes on"
    yield "documents", _used(one.fileused, one.filesmax)
    yield "space", _used(printing.size(one.spaceused), one.spacemax and printing.size(one.spacemax))
    yield "full sets left", "unlimited" if left is None else left
    yield "full set wanted", one.fullsetwanted or "no"
    yield "queue", f"{one.nurlproc} URLs"
    yield "errors", f"{one.nurlerrs} since its last connection"
    yield "held removals", f"{held}, see `lcc provider confirm-removals {one.pid}`" if held else "none"
    yield "bandwidth", f"{printing.size(one.bandwidth)}/s" if one.bandwidth else "no limit of its own"
    yield "hours", f"{printing.hours(one.timeofday)} ({one.timezone or config.timezone})"
    yield "priority", one.priority
    yield "browser", _RENDERS[Render(one.render)]
    yield "at a time", f"{one.atonce} fetch{'es' if one.atonce > 1 else ''}"
    yield "group", one.turngroup or "none: it has a turn of its own"
    yield "mimetypes", one.mimetypes or f"{' '.join(config.policy.mimetypes)} (LCC_MIMETYPES)"
    yield "declared", one.declared or f"{config.policy.declared} (LCC_DECLARED)"
    yield "private addresses", "allowed" if one.allowprivate else "refused"
    yield "robots.txt", "ignored" if one.ignorerobots else "obeyed"
    yield "fallback", _fallback(one)
    yield "mtime", "strict" if one.strictmtime else "not decisive"
    yield "adaptive revisits", _revisit(one, config)
    yield "orphans", one.orphans
    yield "last connection", _connection(one)
    yield "documents confirmed", printing.moment(one.confirmed) or "not by a connection yet"
    yield "registered", printing.moment(one.created)


def _revisit(one: Provider, config: "Config") -> str:
    bounds = bounds_of(one.revisit, config.policy.revisits)
    said = "..".join(map(printing.span, (bounds.shortest, bounds.every, bounds.longest)))
    return said if one.revisit else f"{said} (LCC_REVISIT)"


def _fallback(one: Provider) -> str:
    if not one.fallback:
        return "never visited instead of pushing"
    now = ", which is so now" if one.fallingback else ""
    return f"visited while it misses more than {one.fallback:.4g} of its changes{now}"


def _used(used: object, limit: object) -> str:
    return f"{used} of {limit}" if limit else f"{used}, no limit"


def _connection(one: Provider) -> str:
    if not one.lastconnseq:
        return "never"
    return f"{printing.moment(one.lastconntime)} from {one.lastconnip} (number {one.lastconnseq})"


@provider.command("set", cls=OpenCommand)
@click.argument("pid", type=_PID)
@click.option("--password-file", metavar="FILE", help="Give it a new password: the first line; - is stdin.")
@click.option("--root", "root_urls", multiple=True, metavar="URL", help="Replace all roots; may be repeated.")
@click.option("--add-root", multiple=True, metavar="URL", help="Add a root; may be repeated.")
@click.option("--remove-root", multiple=True, metavar="URL", help="Take a root away; may be repeated.")
@provider_options
@pass_lcc
def set_(
    lcc: Lcc,
    /,
    pid: int,
    *,
    password_file: str | None,
    root_urls: tuple[str, ...],
    add_root: tuple[str, ...],
    remove_root: tuple[str, ...],
    **given: Any,
) -> None:
    """Change a provider; what is not named stays. Running crawls follow within seconds.

    Documents and waiting URLs outside of changed roots go. When that was interrupted, run it again.

    \b
    lcc provider set 7 --bandwidth 0 --timeofday always
    lcc provider set 7 --add-root https://docs.example.org/
    lcc provider set 7 --remove-root http://old.example.org/
    lcc provider set 7 --password-file -
    """  # noqa: D301
    from lcc_scrapy.login.passwords import hash_password
    from lcc_scrapy.providers import registration
    from lcc_scrapy.providers.groups import regroup

    of_apps = _taken(given, lcc.config)
    values = columns(given, lcc.config)
    replaced, added, removed = roots(root_urls), roots(add_root), roots(remove_root)
    if not (values or replaced or added or removed or password_file or of_apps):
        raise click.UsageError("nothing to change: name at least one option")

    more = {"roots": replaced or added or removed, "password": password_file}
    told = [*values, *(name for name, is_given in more.items() if is_given)]
    told += [name for _, its in of_apps for name in its]
    with lcc.audited("provider set", pid, " ".join(told)) as store:
        if "turngroup" in values:
            regroup(store, pid, values.pop("turngroup"), time.time())
        with store.read() as tx:
            again = registration.find(tx, pid).narrowing
        if password_file is not None:
            values["password"] = hash_password(password.from_file(password_file))

        def changed(before: list[str]) -> list[str]:
            return _changed(before, replaced, added, removed, again=again)

        for part, its in of_apps:
            with store.begin() as tx:
                part.change(tx, pid, its)
        registration.change(store, pid, values, changed if replaced or added or removed else None)
        click.echo(f"provider {pid} changed")
        apply_roots(store, pid, lcc.config.policy)
        with store.read() as tx:
            allowed = registration.find(tx, pid).allowprivate
    warn_of_private([*replaced, *added], allowed=allowed)


def _taken(given: dict[str, Any], config: "Config") -> list[tuple["ProviderOptions", dict[str, Any]]]:
    """Take options of apps out of all that is given; return those that are said, by app."""
    found = []
    for part in config.apps.parts("provider_options"):
        its = {option.name: given.pop(option.name) for option in part.options}
        if said := {name: value for name, value in its.items() if value is not None}:
            found.append((part, said))
    return found


def _changed(
    before: list[str], replaced: list[str], added: list[str], removed: list[str], *, again: bool
) -> list[str]:
    """Return the new roots; a root to remove may be gone when an interrupted change is run ``again``."""
    unknown = [root for root in removed if root not in before]
    if unknown and not again:
        raise Failure(f"{unknown[0]} is none of its roots: {', '.join(before)}")
    after = [root for root in dict.fromkeys([*(replaced or before), *added]) if root not in removed]
    if not after:
        raise Failure("a provider needs a root: everything it pushes would be refused")
    return after


@provider.command()
@click.argument("pid", type=_PID)
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_lcc
def remove(lcc: Lcc, pid: int, *, yes: bool) -> None:
    """Remove a provider with its documents, queue and errors. Content users see removals.

    When it was interrupted, run it again.

    \b
    lcc provider remove 7 --yes
    """  # noqa: D301
    from lcc_scrapy.providers import registration

    with lcc.audited("provider remove", pid) as store:
        with store.read() as tx:
            one = registration.find(tx, pid)
        _ask(one, yes=yes)
        with printing.progress("removing", one.fileused) as progress:
            now, policy = int(time.time()), lcc.config.policy
            hooks = list(lcc.config.apps.every("provider"))
            count = registration.remove(store, pid, now, policy, progress, hooks=hooks)
    click.echo(f"provider {pid} removed, with {count} documents")


def _ask(one: Provider, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"this removes {one.fileused} documents: say --yes")
    click.confirm(f"Remove provider {one.pid} with {one.fileused} documents?", abort=True, err=True)


@provider.command("want-full")
@click.argument("pid", type=_PID, required=False)
@click.option("--all", "everybody", is_flag=True, help="Ask all providers.")
@click.option(
    "--reason",
    required=True,
    help=f"Told to the provider: {', '.join(repr(str(one)) for one in Wanted if one)}, or a text of your own;"
    " an empty one withdraws the request.",
)
@pass_lcc
def want_full(lcc: Lcc, pid: int | None, reason: str, *, everybody: bool) -> None:
    """Ask a provider for a full set at its next connection.

    The request ends when a full set was absorbed that was sent after it.

    \b
    lcc provider want-full 7 --reason 'old files'
    lcc provider want-full --all --reason 'cache crash'
    """  # noqa: D301
    from lcc_scrapy.providers import registration

    _one_or_all(pid, everything=everybody)
    try:
        reason = checked_reason(reason)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--reason") from None
    with lcc.audited(Action.WANT_FULL, pid or EVERYBODY, reason) as store:
        pids = [one.pid for one in registration.all_providers(store)] if pid is None else [pid]
        told = {registration.want_full_set(store, one, reason) for one in pids}
    whose = f"provider {pid}" if pid is not None else f"{len(pids)} providers"
    if reason:
        click.echo(f"a full set is wanted from {whose}: {', '.join(sorted(told))}")
    else:
        click.echo(f"no full set is wanted from {whose}")


@provider.command("confirm-removals")
@click.argument("pid", type=_PID)
@pass_lcc
def confirm_removals(lcc: Lcc, pid: int) -> None:
    """Carry out the held removals of a provider.

    When it was interrupted, run it again.

    \b
    lcc provider confirm-removals 7
    """  # noqa: D301
    from lcc_scrapy.providers import registration
    from lcc_scrapy.queue import held_removals

    with lcc.audited(Action.CONFIRM_REMOVALS, pid) as store:
        with store.read() as tx:
            waiting = registration.find(tx, pid).heldremovals
        with printing.progress("removing", waiting) as progress:
            count = held_removals.confirm_removals(store, pid, int(time.time()), lcc.config.policy, progress)
    click.echo(f"{count} documents removed")


@provider.command()
@click.argument("pid", type=_PID, required=False)
@click.option("--all", "everything", is_flag=True, help="Pause all fetching; the providers' states stay.")
@pass_lcc
def pause(lcc: Lcc, pid: int | None, *, everything: bool) -> None:
    """Stop fetching from a provider; it may still push.

    \b
    lcc provider pause 7
    lcc provider pause --all
    """  # noqa: D301
    from lcc_scrapy.providers.groups import pause_everything

    one = _one_or_all(pid, everything=everything)
    if one is not None:
        _set_state(lcc, Action.PAUSE, one, State.PAUSED)
        return
    with lcc.audited(Action.PAUSE) as store:
        pause_everything(store, int(time.time()))
    click.echo("all fetching is paused")


@provider.command()
@click.argument("pid", type=_PID, required=False)
@click.option("--all", "everything", is_flag=True, help="End `pause --all`; the providers' states stay.")
@pass_lcc
def resume(lcc: Lcc, pid: int | None, *, everything: bool) -> None:
    """Make a paused, pending or disabled provider active.

    \b
    lcc provider resume 7
    lcc provider resume --all
    """  # noqa: D301
    from lcc_scrapy.providers.groups import resume_everything

    one = _one_or_all(pid, everything=everything)
    if one is not None:
        _set_state(lcc, Action.RESUME, one, State.ACTIVE)
        return
    with lcc.audited(Action.RESUME) as store:
        resume_everything(store)
    click.echo("fetching goes on")


@provider.command()
@click.argument("pid", type=_PID)
@pass_lcc
def ask(lcc: Lcc, pid: int) -> None:
    """Ask the failing hosts of a provider now, each with one request.

    Where it fails as well, the next one follows as if nobody had asked for this one.

    \b
    lcc provider ask 7
    """  # noqa: D301
    from lcc_scrapy.providers import asking

    with lcc.audited(Action.ASK, pid) as store:
        hosts = asking.ask_now(store, pid, int(time.time()))
    for host in hosts:
        click.echo(f"host {host} is asked now")
    if not hosts:
        click.echo(f"no host of provider {pid} waits")


def _one_or_all(pid: int | None, *, everything: bool) -> int | None:
    if (pid is None) is not everything:
        raise click.UsageError("give a PID, or --all")
    return pid


def _set_state(lcc: Lcc, action: Action, pid: int, state: State) -> None:
    from lcc_scrapy.providers import registration

    with lcc.audited(action, pid) as store:
        registration.change(store, pid, {"state": state})
    click.echo(f"provider {pid} is {state}")
