"""``lcc-push init``: registers a site with an LCC.

Each step is on disk before the next one begins: the pair in the configuration, the proof file in the
docroot, then the activation. So a run after a kill goes on where the one before was.
"""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import AbstractSet

from lcc_scrapy.push import configuration, options, servers, web
from lcc_scrapy.push.command import Notes, Parser, Status, Stop, run
from lcc_scrapy.push.configuration import ConfigFile, Values, replace_file
from lcc_scrapy.push.registration_api import Active, Api, Gone, Pair

PROG = "lcc-push init"
_WANTED = ("email", "bandwidth", "hours", "timezone")
_LINE = re.compile(r"[^\x00-\x1f\x7f]{0,500}")

EXAMPLES = """\
exit status: 0 registered · 3 the file was not found · 64 usage · 66 no such folder · 69 cannot connect
  75 try later, or an operator has to approve: run the same command again · 77 refused

examples:
  lcc-push init https://lcc.example.org/ /srv/www https://www.example.org/
  lcc-push init https://lcc.example.org/ /srv/www/docs https://www.example.org/docs/ --email me@example.org
"""


def parser() -> Parser:
    """Return the parser of the command's options."""
    made = Parser(PROG, "Register a site with an LCC, and write the configuration of lcc-push.", EXAMPLES)
    add = made.add_argument
    add("server", metavar="SERVER", help="the LCC: https://lcc.example.org/")
    add("docroot", metavar="DOCROOT", help="the folder that the web server serves")
    add("url", metavar="URL", help="its URL: https://www.example.org/")
    add("--config", metavar="FILE", help="instead of ~/.config/lcc-push.ini")
    add("--ca", metavar="FILE", default="", help="certificates to trust instead of the system's")
    add("--email", metavar="ADDRESS", default="", help="where the operator reaches you")
    add("--bandwidth", metavar="BYTES", default="", help="bytes per second that the LCC may take")
    add("--hours", metavar="MASK", default="", help="the hours at which it may fetch")
    add("--timezone", metavar="ZONE", default="", help="the time zone of these hours: Europe/Amsterdam")
    add("--timeout", metavar="SECONDS", default="60", help="longest wait for the LCC (default: 60)")
    add("--force", action="store_true", help="replace a configuration or proof file that is in the way")
    return made


def main(argv: Sequence[str]) -> int:
    """Run the command; returns its exit status."""
    return run(PROG, lambda: _main(parser().parse_args(argv)))


def _main(asked: Namespace) -> int:
    url = options.prefix(asked.url)
    docroot = Path(asked.docroot).absolute()
    if not docroot.is_dir():
        raise Stop(Status.NO_INPUT, f"{asked.docroot}: no such folder")
    if not os.access(docroot, os.W_OK):
        raise Stop(Status.BAD_INPUT, f"{asked.docroot}: the proof file cannot be written there")
    file = ConfigFile(Path(asked.config) if asked.config else configuration.default_path())
    settings = {
        "server": asked.server, "docroot": str(docroot), "url": url,
        **({"ca": str(Path(asked.ca).absolute())} if asked.ca else {}),
    }  # fmt: skip
    for value in settings.values():
        if not _LINE.fullmatch(value) or not value.isprintable():
            raise Stop(Status.USAGE, f"{value!r} cannot stand in a configuration file")
    return Init(_api(asked), file, settings, asked).run()


def _api(asked: Namespace) -> Api:
    try:
        base = web.HttpUrl.parse(asked.server)
    except ValueError:
        raise Stop(Status.USAGE, f"server {asked.server!r} is not https://HOST/") from None
    if not base.is_safe:
        raise Stop(
            Status.USAGE, f"{asked.server}: the password would go over the network in clear; use https://"
        )
    timeout = options.number({"timeout": asked.timeout}, "timeout", 60, least=0.1, most=3600)
    tls = servers.context(asked.ca) if base.scheme == "https" else None
    return Api(base, web.Dial(timeout, tls))


class Init:
    """One registration."""

    def __init__(self, api: Api, file: ConfigFile, settings: Values, asked: Namespace) -> None:
        self._api = api
        self._file = file
        self._settings = settings
        self._asked = asked
        self._notes = Notes(PROG)

    def run(self) -> Status:
        """Register, or go on; raises `Stop`."""
        found, begun = self._file.read() if self._file.exists() else ({}, {})
        is_here = all(found.get(name) == self._settings[name] for name in ("docroot", "url"))
        if is_here and found.get("pid") and not begun and not self._asked.force:
            self._notes.tell(f"{self._file.path}: registered already, as provider {found['pid']}")
            return Status.DONE
        is_same = (found.get("url"), begun.get("server")) == (self._settings["url"], self._settings["server"])
        pair = _pair(found, begun) if is_same else None
        if pair is None:
            self._ask_to_replace(found, begun)
            pair = self._register()
        elif not is_here:
            self._move(pair, Path(found.get("docroot", "")))
        try:
            return self._activate(pair)
        except Gone:
            self._notes.tell("the registration expired; registering anew")
        try:
            return self._activate(self._register(), pair.secret)
        except Gone:
            raise Stop(Status.LOGIN_REFUSED, "the LCC does not know what it has just given out") from None

    def _ask_to_replace(self, found: Values, begun: Values) -> None:
        if not self._file.exists() or self._asked.force:
            return
        unfinished = ", whose registration is not finished" if begun else ""
        what = f"{self._file.path} is of {found.get('url') or 'another site'}{unfinished}"
        if not options.confirmed(f"{what}; replace it?"):
            raise Stop(Status.USAGE, f"{what}: name another file with --config, or replace it with --force")

    def _register(self) -> Pair:
        wanted = {name: getattr(self._asked, name) for name in _WANTED if getattr(self._asked, name)}
        pair = self._api.register({"site": self._settings["url"], **wanted})
        self._note(pair)
        return pair

    def _move(self, pair: Pair, earlier: Path) -> None:
        """Go on in another docroot than the one that was named first; the proof file there goes."""
        proof = earlier / pair.file
        with suppress(OSError):
            if _holds(proof, {pair.secret}):
                proof.unlink()
        self._note(pair)

    def _note(self, pair: Pair) -> None:
        begun = {"server": self._settings["server"], "secret": pair.secret, "file": pair.file}
        self._file.write({**self._settings, "pid": pair.pid, "password": pair.password}, begun)

    def _activate(self, pair: Pair, earlier: str = "") -> Status:
        proof = Path(self._settings["docroot"]) / pair.file
        self._put(proof, pair.secret, earlier)
        try:
            active = self._api.activate(pair, self._settings["url"])
        except Stop as stop:
            if stop.status is not Status.REFUSED:
                raise
            where = f"The file is {proof}: does {self._settings['url']}{pair.file} show it?"
            raise Stop(stop.status, f"{stop}. {where}") from None
        if active.waits:
            raise Stop(
                Status.TRY_LATER,
                f"registered as provider {pair.pid}; an operator has to approve it. Leave {proof} there, "
                "and run the same command again later",
            )
        with suppress(FileNotFoundError):
            proof.unlink()
        self._file.write({**self._settings, **_login_of(pair, active)})
        where = f", which takes pushes at {active.server}" if active.server else ""
        self._notes.tell(f"registered as provider {pair.pid} for {active.root}{where}; now run: lcc-push")
        if active.unsafe:
            self._notes.warn(
                f"the LCC names no server with TLS, but {active.unsafe}: the password is not sent there. "
                f"Pushes go to {self._settings['server']}; if that takes none, ask the operator for "
                f"{servers.TLS}HOST"
            )
        return Status.DONE

    def _put(self, proof: Path, secret: str, earlier: str) -> None:
        """Write the proof file, which the web server has to be able to read."""
        try:
            if os.path.lexists(proof) and not self._asked.force:
                self._check_ours(proof, {secret, earlier})
            replace_file(proof, secret.encode(), 0o644)
        except OSError as error:
            raise Stop(Status.BAD_INPUT, f"{proof} cannot be written: {error.strerror}") from None

    def _check_ours(self, proof: Path, ours: set[str]) -> None:
        if proof.exists() and not proof.is_file():
            raise Stop(Status.BAD_INPUT, f"{proof} is no file: remove it")
        if not _holds(proof, ours - {""}) and not options.confirmed(
            f"{proof} is not of this registration; replace it?"
        ):
            raise Stop(Status.USAGE, f"{proof} is not of this registration: remove it, or use --force")


def _holds(proof: Path, secrets: AbstractSet[str]) -> bool:
    """Tell whether a file is no link, and has one of these secrets as its body."""
    if proof.is_symlink() or not proof.is_file():
        return False
    with suppress(OSError), proof.open("rb") as file:
        return file.read(1000).decode("latin-1").strip() in secrets
    return False


def _pair(found: Values, begun: Values) -> Pair | None:
    pair = Pair(
        found.get("pid", ""), found.get("password", ""), begun.get("secret", ""), begun.get("file", "")
    )
    return pair if pair.is_whole else None


def _login_of(pair: Pair, active: Active) -> dict[str, str]:
    server = {"server": active.server} if active.server else {}
    return {"pid": pair.pid, "password": pair.password, **server}
