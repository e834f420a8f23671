"""``lcc registration``: site owners who registered, and wait for their proof or for the operator."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.apps.registration.rules import Kind, Registration, Stage
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.apps.registration.service import Registrations
    from lcc_scrapy.db.tx import Store

_PID = click.IntRange(1, 10**18 - 1)
_LISTED = ("pid", "for", "state", "site", "root", "e-mail", "address", "begun", "ends")
_SECRETS = frozenset({"secret", "password"})
_STAGES: dict[str, str] = {Stage.WAITING: "waits for its proof", Stage.PROVED: "waits for approval"}
_KINDS: dict[str, str] = {
    Kind.PROVIDER: "a provider",
    Kind.ROOT: "a further root",
    Kind.PASSWORD: "a new password",
}


@click.group(cls=LccGroup)
def registration() -> None:
    """Show, approve and reject registrations of site owners.

    LCC_REGISTRATION says whether they may register. What is complete is a provider: `lcc provider list`.

    \b
    lcc registration list
    lcc registration approve 1000003
    lcc registration reject 1000004
    """  # noqa: D301


@registration.command("list")
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, as_json: bool) -> None:
    """List what waits for its proof or for approval, oldest first.

    \b
    lcc registration list
    lcc registration list --json
    """  # noqa: D301
    with lcc.store() as store:
        found = sorted(_service(lcc, store).all(), key=lambda one: (one.created, one.pid))
    if as_json:
        printing.json_list(map(_facts, found))
    elif not printing.table(_LISTED, map(_row, found)):
        printing.note("nothing waits: whoever proved a site is a provider (`lcc provider list`)")


@registration.command()
@click.argument("pid", type=_PID)
@printing.json_option
@pass_lcc
def show(lcc: Lcc, *, pid: int, as_json: bool) -> None:
    """Show what waits of one pid.

    \b
    lcc registration show 1000003
    lcc registration show 1000003 --json
    """  # noqa: D301
    with lcc.store() as store:
        found = _service(lcc, store).of(pid)
    if not found:
        raise Failure(f"there is no registration of pid {pid}; `lcc registration list` shows all")
    if as_json:
        printing.as_json([_facts(one) for one in found])
        return
    for one in found:
        printing.facts(_lines(lcc, one))


@registration.command()
@click.argument("pid", type=_PID)
@pass_lcc
def approve(lcc: Lcc, *, pid: int) -> None:
    """Let a registration that was proved take effect.

    Its password logs in from then on.

    \b
    lcc registration approve 1000003
    """  # noqa: D301
    with lcc.store() as store:
        done = _service(lcc, store).approve(pid)
    for one in done:
        click.echo(f"provider {pid}: {' '.join(one.roots)}")


@registration.command()
@click.argument("pid", type=_PID)
@pass_lcc
def reject(lcc: Lcc, *, pid: int) -> None:
    """Remove the registrations of a pid.

    A provider that is active already stays: `lcc provider remove` is for that.

    \b
    lcc registration reject 1000004
    """  # noqa: D301
    with lcc.store() as store:
        count = _service(lcc, store).reject(pid)
    click.echo(f"{count} removed; pid {pid} is not given out again")


def _service(lcc: Lcc, store: "Store") -> "Registrations":
    from lcc_scrapy.apps.registration.service import Registrations

    return Registrations(store, lcc.config.of(RegistrationRules), fullsets=lcc.config.fullsets)


def _facts(one: Registration) -> dict[str, Any]:
    """Return what is kept, without what is secret."""
    return {name: value for name, value in asdict(one).items() if name not in _SECRETS}


def _row(one: Registration) -> list[object]:
    return [
        one.pid,
        _KINDS[one.kind],
        _STAGES[one.stage],
        one.site,
        one.root,
        one.contact,
        one.address,
        printing.moment(one.created),
        printing.moment(one.expires),
    ]


def _lines(lcc: Lcc, one: Registration) -> list[tuple[str, object]]:
    hours = f"{printing.hours(one.timeofday)} ({one.timezone or lcc.config.timezone})"
    return [
        ("pid", one.pid),
        ("for", _KINDS[one.kind]),
        ("state", _STAGES[one.stage]),
        ("site", one.site),
        ("root", one.root or "none proved yet"),
        ("e-mail", one.contact),
        ("bandwidth", f"{printing.size(one.bandwidth)}/s" if one.bandwidth else "no limit of its own"),
        ("hours", hours),
        ("address", one.address),
        ("begun", printing.moment(one.created)),
        ("ends", printing.moment(one.expires)),
    ]
