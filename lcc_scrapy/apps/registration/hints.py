"""What a new provider is told about pushing: addresses, and lines that are ready to paste."""

import shlex
from dataclasses import dataclass

from lcc_scrapy.apps.registration.rules import FILE, WITH_TLS, Kind
from lcc_scrapy.apps.registration.service import Done
from lcc_scrapy.domain.roots import HttpUrl

PASSWORD_OF_THE_PROVIDER = "(the password that you have)"  # noqa: S105 - no password
ASK = "ask the operator of this cache"


@dataclass(frozen=True, slots=True)
class Hints:
    """Where to push, and how; empty where the operator has said nothing."""

    push_url: str
    uns: tuple[str, ...]
    config: str
    """The lines of ``~/.config/lcc-push.ini``."""
    lcc_push: str
    commands: str
    """The three older commands, in a pipe."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where providers push; empty = not said. ``uns``: ``host:port``, behind ``lccs://`` if it has TLS."""

    push_url: str = ""
    uns: tuple[str, ...] = ()


NOT_SAID = Places()


def hints(places: Places, done: Done, password: str) -> Hints:
    """Return what to tell a provider; its own password, which it had before a further root, is not shown."""
    pid, root, password = done.pid, done.roots[0], "" if done.kind == Kind.ROOT else password
    uns = places.uns[0] if places.uns else "UNS_HOST:9000"
    server = places.push_url or uns
    tls = " --tls" if uns.startswith(WITH_TLS) else ""
    return Hints(
        places.push_url,
        places.uns,
        f"[lcc-push]\nserver = {server}\npid = {pid}\npassword = {password or PASSWORD_OF_THE_PROVIDER}\n"
        f"docroot = DOCROOT\nurl = {root}\n",
        "lcc-push",
        "file2url --find DOCROOT -name '*.html' \\\n"
        "    | lcccpstate --statefile=state.txt \\\n"
        f"    | lcccp --uns={uns.removeprefix(WITH_TLS)}{tls} --pid={pid} \\\n"
        f"        --pwd-file=lcc.pwd --urlprefix={shlex.quote(root)}",
    )


def file_url(folder: str) -> str:
    """Return the URL of the file in a folder."""
    return f"{folder.removesuffix('/')}/{FILE}"


def mail_text(site: HttpUrl, pid: int, secret: str, password: str, days: float) -> str:
    """Return the text of the mail that was asked for."""
    return (
        f"Somebody, most likely you, registered {site} with a Local Content Cache.\n"
        "If it was not you, do nothing: the registration expires by itself.\n\n"
        f"provider id: {pid}\npassword:    {password}\nsecret:      {secret}\n\n"
        f"1. Put a file with the name {FILE} into the folder of your documents, with the\n"
        f"   secret as its only line, so that it is found at\n   {file_url(str(site))}\n"
        "2. Go back to the page on which you registered, and say that the file is there.\n"
        f"   You have {days:.3g} days for that.\n\n"
        "Keep the password: it is the one that your push command needs.\n"
    )
