"""``lcc user``: who may use the dashboard of ``lcc web``."""

import time

import click

from lcc_scrapy.cli import password as passwords
from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, LccGroup, pass_lcc
from lcc_scrapy.domain.users import Role, User

_FILE = "Its first line is the password; - is stdin."
_ROLES = click.Choice([str(one) for one in Role])
_providers = click.option(
    "--provider",
    "pids",
    type=click.IntRange(1, 10**18 - 1),
    multiple=True,
    metavar="PID",
    help="A provider that a provider-owner sees; may be repeated.",
)


@click.group(cls=LccGroup)
def user() -> None:
    """Add, list, change and remove users of the dashboard.

    \b
    lcc user add anna --role operator --password-file secret
    lcc user list
    lcc user remove anna
    """  # noqa: D301


@user.command()
@click.argument("name")
@click.option("--role", type=_ROLES, required=True, help="What the user may see and do.")
@_providers
@click.option("--password-file", metavar="FILE", help=_FILE)
@click.option(
    "--no-password", is_flag=True, help="Only a proxy signs this user in: LCC_DASHBOARD_USER_HEADER."
)
@pass_lcc
def add(
    lcc: Lcc, name: str, role: str, pids: tuple[int, ...], password_file: str | None, *, no_password: bool
) -> None:
    """Add a user.

    A viewer sees everything and changes nothing. An operator may do all that the dashboard offers. A
    provider-owner sees the providers of --provider only, and may retry URLs and ask for full sets there.

    \b
    lcc user add anna --role operator --password-file secret
    lcc user add example.org --role provider-owner --provider 7 --password-file -
    lcc user add otto --role viewer --no-password
    """  # noqa: D301
    from lcc_scrapy.login import people

    secret = _secret(password_file, no_password=no_password)
    if secret is None:
        raise click.UsageError("give --password-file FILE (- is stdin), or --no-password")
    made = User(name, role, people.written(pids), secret, int(time.time()))
    with lcc.audited("user add", detail=f"{name} {role}") as store:
        people.add(store, made)
    click.echo(f"user {name} added: {role}")


def _secret(file: str | None, *, no_password: bool) -> str | None:
    """Return the hash of a password, "" for none, None = nothing was said of it."""
    from lcc_scrapy.login.passwords import hash_password

    if file is not None and no_password:
        raise click.UsageError("--password-file and --no-password exclude each other")
    if no_password:
        return ""
    return None if file is None else hash_password(passwords.from_file(file))


@user.command("list")
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, as_json: bool) -> None:
    """List all users, by name.

    \b
    lcc user list
    lcc user list --json
    """  # noqa: D301
    from lcc_scrapy.login import people

    with lcc.store() as store:
        found = people.everybody(store)
    if as_json:
        printing.as_json([_facts(one) for one in found])
        return
    rows = [
        (one.name, one.role, one.providers, "yes" if one.password else "no", printing.moment(one.created))
        for one in found
    ]
    if not printing.table(("name", "role", "providers", "password", "created"), rows):
        printing.note("no users yet: `lcc user add` makes one")


def _facts(one: User) -> dict[str, object]:
    return {
        "name": one.name,
        "role": one.role,
        "providers": sorted(one.pids or ()),
        "password": bool(one.password),
        "created": one.created,
    }


@user.command("set")
@click.argument("name")
@click.option("--role", type=_ROLES, help="Give the user another role.")
@_providers
@click.option("--password-file", metavar="FILE", help=f"Give the user a new password. {_FILE}")
@click.option("--no-password", is_flag=True, help="Take the password away: only a proxy signs this user in.")
@pass_lcc
def set_(
    lcc: Lcc,
    name: str,
    role: str | None,
    pids: tuple[int, ...],
    password_file: str | None,
    *,
    no_password: bool,
) -> None:
    """Change a user, and end the user's sessions; what is not named stays.

    --provider replaces all providers. Who becomes viewer or operator has none.

    \b
    lcc user set anna --password-file -
    lcc user set example.org --provider 7 --provider 8
    """  # noqa: D301
    from lcc_scrapy.login import people

    secret = _secret(password_file, no_password=no_password)
    if role is None and not pids and secret is None:
        raise click.UsageError("nothing to change: name at least one option")
    its = pids or (() if role not in {None, Role.OWNER} else None)
    with lcc.audited("user set", detail=name) as store:
        people.change(store, name, role=role, pids=its, password=secret)
    click.echo(f"user {name} changed")


@user.command()
@click.argument("name")
@pass_lcc
def remove(lcc: Lcc, name: str) -> None:
    """Remove a user, and end the user's sessions.

    \b
    lcc user remove anna
    """  # noqa: D301
    from lcc_scrapy.login import people

    with lcc.audited("user remove", detail=name) as store:
        people.remove(store, name)
    click.echo(f"user {name} removed")
