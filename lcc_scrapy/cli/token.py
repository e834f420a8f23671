"""``lcc token``: who may read over the network."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, pass_lcc
from lcc_scrapy.cli.feed_options import patterns
from lcc_scrapy.domain.directives import checked_owner
from lcc_scrapy.domain.tokens import (
    ANNOTATE,
    LABEL_MAX,
    PUSH,
    READ,
    RESTRICTION_MAX,
    SCOPES,
    Token,
    digest_of,
    new_secret,
)

if TYPE_CHECKING:
    from lcc_scrapy.feed.tokens import StoreTokens
    from lcc_scrapy.front.tokens import FrontTokens


@click.group(cls=LccGroup)
def token() -> None:
    """Add, list and revoke tokens of content users, and those that providers push with.

    `lcc web`, `lcc query` and `lcc files` ask for them. A token of scope `push` is as good as the password of
    its provider.

    \b
    (umask 077; lcc token add search-engine > token)
    lcc token list
    lcc token revoke 0f3c2a9b8d7e
    """  # noqa: D301


_FRONT = click.option("--front", is_flag=True, help="For `lcc front web`, in the front's database.")


@contextmanager
def _opened(lcc: Lcc, *, front: bool) -> "Iterator[StoreTokens | FrontTokens]":
    """Open the tokens of the LCC, or of the front."""
    if front:
        from lcc_scrapy.cli.front import opened
        from lcc_scrapy.front.tokens import FrontTokens

        with opened(lcc) as directory:
            yield FrontTokens(directory)
        return
    from lcc_scrapy.feed.tokens import StoreTokens

    with lcc.store() as store:
        yield StoreTokens(store)


def _label(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    if not text.strip() or len(text) > LABEL_MAX or not text.isprintable():
        raise click.BadParameter(f"{text!r}, expected 1 to {LABEL_MAX} printable characters")
    return text


def _lifetime(_ctx: click.Context, _param: click.Parameter, text: str) -> int:
    from lcc_scrapy.domain.notations import duration

    try:
        return int(duration(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@token.command()
@click.argument("label", callback=_label)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=(READ,),
    show_default=True,
    help="What the token permits: the feed and documents, the metrics, content files for `lcc web` on"
    " another machine, pushing as one provider, or the interests and alerts of the owner LABEL. May be"
    " repeated.",
)
@click.option(
    "--expires",
    "lifetime",
    default="365d",
    show_default=True,
    callback=_lifetime,
    metavar="DURATION",
    help="How long the token is valid, for example 90d or 12h; 0 = for ever.",
)
@click.option(
    "--provider",
    "providers",
    type=click.IntRange(1),
    multiple=True,
    metavar="PID",
    help="Only for documents of this provider; may be repeated. With --scope push: who pushes.",
)
@click.option(
    "--mimetype",
    "mimetypes",
    callback=patterns,
    multiple=True,
    metavar="PATTERN",
    help="Only for these documents, for example 'text/*'; may be repeated.",
)
@_FRONT
@pass_lcc
def add(
    lcc: Lcc,
    *,
    front: bool,
    label: str,
    scopes: tuple[str, ...],
    lifetime: int,
    providers: tuple[int, ...],
    mimetypes: tuple[str, ...],
) -> None:
    """Make a token for LABEL and print it.

    It is printed only once: the LCC keeps nothing but its SHA-256.

    LABEL says whose it is. To change a token for another one, add one with the same label, hand it over,
    then revoke the old one: named cursors belong to the label.

    \b
    (umask 077; lcc token add search-engine > token)
    lcc token add prometheus --scope metrics --expires 0
    lcc token add intranet --provider 7 --mimetype 'text/*' --expires 90d
    (umask 077; lcc token add example.org --scope push --provider 7 > token)
    (umask 077; lcc token add anna --scope annotate > token)
    """  # noqa: D301
    _check(set(scopes), set(providers), mimetypes)
    if front and set(scopes) != {READ}:
        raise click.UsageError("--front goes with --scope read only")
    if ANNOTATE in scopes:
        _check_owner(label)
    now = int(time.time())
    secret = new_secret()
    made = Token(
        digest_of(secret),
        label,
        " ".join(sorted(set(scopes))),
        _restriction(providers),
        _restriction(mimetypes),
        created=now,
        expires=now + lifetime if lifetime else 0,
    )
    with _opened(lcc, front=front) as tokens:
        tokens.add(made)
    printing.note(f"token {made.tokenid} of {label}: {_goodness(made)}")
    click.echo(secret)


def _check(scopes: set[str], providers: set[int], mimetypes: tuple[str, ...]) -> None:
    if PUSH in scopes:
        if scopes != {PUSH} or len(providers) != 1 or mimetypes:
            raise click.UsageError("--scope push goes with one --provider, and with nothing else")
    elif scopes != {READ} and (providers or mimetypes):
        raise click.UsageError("--provider and --mimetype go with no other --scope than read or push")


def _check_owner(label: str) -> None:
    try:
        checked_owner(label)
    except ValueError as error:
        raise click.UsageError(f"--scope annotate: the label names an owner; {error}") from None


def _restriction(values: tuple[Any, ...]) -> str:
    text = " ".join(map(str, sorted(set(values))))
    if len(text) > RESTRICTION_MAX:
        raise Failure(
            f"more than {RESTRICTION_MAX} characters of providers or mimetypes: take several tokens"
        )
    return text


def _goodness(one: Token) -> str:
    until = f"until {printing.moment(one.expires)}" if one.expires else "for ever"
    return f"good for {one.scopes} {until}"


@token.command("list")
@printing.json_option
@_FRONT
@pass_lcc
def list_(lcc: Lcc, *, front: bool, as_json: bool) -> None:
    """List all tokens, also expired ones, oldest first.

    \b
    lcc token list
    lcc token list --json
    """  # noqa: D301
    with _opened(lcc, front=front) as tokens:
        found = tokens.all()
    if as_json:
        printing.as_json([_facts(one) for one in found])
        return
    printing.table(
        ("id", "label", "scopes", "providers", "mimetypes", "created", "expires", "used"),
        [_row(one) for one in found],
    )


def _facts(one: Token) -> dict[str, object]:
    facts = {name: value for name, value in asdict(one).items() if name != "digest"}
    lists = {name: str(facts[name]).split() for name in ("scopes", "providers", "mimetypes")}
    return {"id": one.tokenid, **facts, **lists, "expired": one.has_expired(int(time.time()))}


def _row(one: Token) -> tuple[str, ...]:
    expired = " (expired)" if one.has_expired(int(time.time())) else ""
    return (
        one.tokenid,
        one.label,
        one.scopes,
        one.providers or "all",
        one.mimetypes or "all",
        printing.moment(one.created),
        f"{printing.moment(one.expires) or 'never'}{expired}",
        printing.moment(one.used) or "never",
    )


@token.command()
@click.argument("tokenid", metavar="ID")
@_FRONT
@pass_lcc
def revoke(lcc: Lcc, *, front: bool, tokenid: str) -> None:
    """Revoke a token.

    It is refused from the next request on. `lcc token list` shows the ID.

    \b
    lcc token revoke 0f3c2a9b8d7e
    """  # noqa: D301
    with _opened(lcc, front=front) as tokens:
        gone = tokens.revoke(tokenid)
    click.echo(f"token {gone.tokenid} of {gone.label} revoked")
