"""The steps of a registration as pages and JSON API offer them: throttled, and beside the event loop."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from lcc_scrapy.apps.registration import rules as rules_of
from lcc_scrapy.apps.registration.hints import NOT_SAID, Places, mail_text
from lcc_scrapy.apps.registration.proof import Prover
from lcc_scrapy.apps.registration.rules import FILE, Kind, Registration, Stage, Wanted
from lcc_scrapy.apps.registration.service import Done, Given, NotProved, Registering
from lcc_scrapy.apps.registration.throttle import Throttle
from lcc_scrapy.domain.errors import BadField, LccError
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.mail.sending import Mailer
from lcc_scrapy.web.problems import Busy

PROOFS = 8
"""Files that are looked for at a time."""

CHECKS = 2
"""Passwords that are checked at a time where the operator says nothing else; each takes 19 MiB."""

MAILS = 2
"""Mails that are handed over at a time: a mail server may take a minute for each."""

FAILED = (
    f"the file {FILE} was not found in that folder, or is not exactly the secret."
    " Nothing was changed: mend it and try again"
)
"""What strangers are told of every proof that failed; the log has the reason."""

_DAY = 86400
_log = logging.getLogger(__name__)


class Failed(LccError):
    """The proof failed, for whatever reason."""

    def __init__(self) -> None:
        super().__init__(FAILED)


@dataclass(frozen=True, slots=True)
class Asked:
    """A registration as somebody wrote it; ``mail``: the pair is to be mailed to ``email``."""

    site: str
    email: str = ""
    bandwidth: str = ""
    hours: str = ""
    timezone: str = ""
    mail: bool = False


@dataclass(frozen=True, slots=True)
class Credentials:
    """A provider's id, and the password that belongs to what is asked for."""

    pid: int
    password: str


class Steps:
    """All steps. ``slots`` is how many a time mask has, ``mailer`` None where mail is off.

    ``places`` are what new providers are told. ``checks``: passwords that are checked at a time.
    """

    def __init__(
        self,
        registrations: Registering,
        *,
        slots: int,
        places: Places = NOT_SAID,
        mailer: Mailer | None = None,
        checks: int = CHECKS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = registrations.rules
        self.places = places
        self.mails = mailer is not None
        self._registrations = registrations
        self._slots = slots
        self._mailer = mailer
        self._throttle = Throttle(self._rules, clock)
        self._prover = Prover(self._rules)
        self._proofs = asyncio.Semaphore(PROOFS)
        self._checks = asyncio.Semaphore(checks)
        self._mails = asyncio.Semaphore(MAILS)

    # --- step one --------------------------------------------------------------------------------

    async def begin(self, asked: Asked, address: str) -> Given:
        """Register a site; raises ``BadField``, ``ShareUsedUp``, ``Full``."""
        self._throttle.greet(address)
        wanted = self._wanted(asked)
        self._throttle.begin(address)
        self._throttle.name(wanted.site.host)
        if asked.mail:
            self._throttle.mail(wanted.contact)
        return await to_thread.run_sync(self._registrations.begin, wanted, address)

    def _wanted(self, asked: Asked) -> Wanted:
        wanted = Wanted(
            rules_of.folder_of(asked.site, self._rules.ports),
            rules_of.contact_of(asked.email),
            rules_of.bandwidth_of(asked.bandwidth, self._rules.bandwidth),
            rules_of.hours_of(asked.hours, self._slots),
            rules_of.zone_of(asked.timezone),
        )
        if asked.mail and not self.mails:
            raise BadField("mail", "this cache sends no mail: leave it out, and keep what is shown")
        if asked.mail and not wanted.contact:
            raise BadField("email", "write the address to which it is to be sent")
        return wanted

    async def begin_root(self, who: Credentials, site: str, address: str) -> Given:
        """Ask for a secret for a further root; raises ``NotKnown``, and what ``begin`` does."""
        folder = rules_of.folder_of(site, self._rules.ports, "folder")
        self._throttle.show(address, who.pid)
        self._throttle.name(folder.host)
        begin = self._registrations.begin_root
        async with self._checks:
            given = await to_thread.run_sync(begin, who.pid, who.password, folder, address)
        self._throttle.remember(address, who.pid)
        return given

    async def begin_password(self, pid: int, address: str) -> Given:
        """Ask for a new password; raises ``ShareUsedUp``, ``Full``."""
        self._throttle.begin(address)
        return await to_thread.run_sync(self._registrations.begin_password, pid, address)

    async def mail(self, given: Given) -> None:
        """Send what was given out to the address that was named; failures are logged."""
        async with self._mails:  # the threads are for everybody
            await to_thread.run_sync(self._mail, given)

    def _mail(self, given: Given) -> None:
        made = given.registration
        assert self._mailer is not None
        days = (made.expires - made.created) / _DAY
        text = mail_text(HttpUrl.parse(made.site), made.pid, given.secret, given.password, days)
        try:
            self._mailer.send(made.contact, f"Your registration {made.pid}", text)
        except LccError as error:
            facts = {"pid": made.pid, "error": error}
            _log.warning("the mail about the registration of pid %(pid)d was not sent: %(error)s", facts)

    # --- step two --------------------------------------------------------------------------------

    async def prove(self, who: Credentials, kind: Kind, folder: str, address: str) -> Done:
        """Look for the file now, and do what it is for.

        ``folder`` empty: the one that was named in step one. Raises ``BadField``, ``NotKnown``,
        ``AlreadyActive``, ``Failed``, ``ShareUsedUp``, ``Busy``.
        """
        self._throttle.show(address, who.pid if kind is Kind.ROOT else None)
        found = await self._find(who, kind, address)
        if found.stage == Stage.PROVED:
            return Done(found.pid, found.kind, (found.root,), active=False)
        try:
            done = await self._prove(found, folder)
        except NotProved as error:
            facts: dict[str, Any] = {"pid": found.pid, "url": folder or found.site, "reason": error.reason}
            _log.warning("no proof for pid %(pid)d at %(url)s: %(reason)s", facts)
            raise Failed from None
        self._throttle.remember(address, who.pid)
        return done

    async def _find(self, who: Credentials, kind: Kind, address: str) -> Registration:
        find = self._registrations.find
        if kind is not Kind.ROOT:  # a password that was given out to whoever asked proves nothing yet
            return await to_thread.run_sync(find, who.pid, who.password, kind)
        async with self._checks:
            found = await to_thread.run_sync(find, who.pid, who.password, kind)
        self._throttle.remember(address, who.pid)
        return found

    async def _prove(self, found: Registration, folder: str) -> Done:
        if found.kind == Kind.PASSWORD:
            roots = await to_thread.run_sync(self._registrations.roots_to_prove, found)
            for root in roots:
                place = HttpUrl.parse(root)
                if not _stands_at(await self._root(found, place), place):
                    raise NotProved(f"the file for {root} is elsewhere")
        else:
            roots = [await self._root(found, self._place(found, folder))]
        return await to_thread.run_sync(self._registrations.complete, found, roots)

    def _place(self, found: Registration, folder: str) -> HttpUrl:
        """Return the folder in which the file is to be: on the host that was named in step one."""
        site = HttpUrl.parse(found.site)
        place = rules_of.folder_of(folder, self._rules.ports, "folder") if folder.strip() else site
        if place.host != site.host:
            raise BadField("folder", f"write a folder on {site.host}, or register {place.host} by itself")
        return place

    async def _root(self, found: Registration, place: HttpUrl) -> str:
        if self._proofs.locked():
            raise Busy("as many files are looked for as may be at a time: try again in a minute")
        async with self._proofs:
            self._throttle.look(place.host)
            return await self._prover.root(found.secret, place)


def _stands_at(root: str, place: HttpUrl) -> bool:
    """Tell whether a root that was proved is a place, which may lack the slash at its end."""
    proved = HttpUrl.parse(root)
    same = (proved.host, proved.port, proved.scheme) == (place.host, place.port, place.scheme)
    return same and proved.path == f"{place.path.removesuffix('/')}/"
