"""Checks the URLs of one set, one at a time, and keeps count (design sections 4 and 5)."""

from collections import deque
from dataclasses import replace

from lcc_scrapy.domain.entries import (
    EntryRules,
    Operation,
    RefusedUrl,
    UrlEntry,
    fetch_url,
    read_entry,
    readable_key,
    with_prefix,
)
from lcc_scrapy.domain.errors import UrlRefused, text_of
from lcc_scrapy.domain.roots import URL_MAX, HttpUrl, root_to_add
from lcc_scrapy.domain.runs import EntryRun, RunRules, read_run
from lcc_scrapy.domain.sent import with_form
from lcc_scrapy.domain.timeslots import ALWAYS
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.wire.messages import SetStart, Url, UrlError, UrlRun

_WRONG_TYPE, _OUTSIDE_ROOTS = 703, 704
MASKS = 64
"""Different ``timeofday`` masks in one set; further ones are refused with 706."""


REFUSED_CHARACTERS = 1 << 16
"""Characters of refused URLs that are kept of a set: some 500 usual ones."""

_TEXT_MAX = 255


class UrlValidator:
    """``received`` counts valid URLs; ``unreadable`` those of a full set that had not even a key."""

    def __init__(self, login: Login, start: SetStart, url_length: int = URL_MAX) -> None:
        self.received = 0
        self.unreadable = self.refused_types = 0
        self.refused: deque[RefusedUrl] = deque()
        """The newest refusals, ``REFUSED_CHARACTERS`` of them, for `lcc explain`."""
        self._room = REFUSED_CHARACTERS
        self._start = start
        self._masks: set[str] = set()
        self._rules = EntryRules(
            login.accepted.mimetypes, login.roots, start.urlprefix, login.timeofday, login.slots, url_length
        )
        self._run_rules = RunRules.of(self._rules)

    def judge(self, url: Url) -> tuple[UrlEntry | None, UrlError | None]:
        """Return what to record of a URL and what to tell its provider; either may be nothing."""
        try:
            entry = read_entry(url.attributes, self._rules)
            self._count_mask(entry.timeofday)
        except UrlRefused as refused:
            return self._refuse(url, refused)
        self.received += 1
        return with_form(entry, url.as_sent, self._rules.urlprefix), None

    def judge_run(self, urls: UrlRun) -> EntryRun | None:
        """Return what to record of a run in which nothing is wrong; None = judge its URLs one by one."""
        run = read_run(urls.columns, self._run_rules, urls.names_as_sent)
        if run is None:
            return None
        try:
            self._count_mask(ALWAYS)
        except UrlRefused:
            return None
        self.received += len(run)
        return run

    def _count_mask(self, mask: str) -> None:
        """Refuse a set that splits itself into more hour masks than the queue can look at together."""
        self._masks.add(mask)
        if len(self._masks) > MASKS:
            self._masks.discard(mask)
            raise UrlRefused(706, f"timeofday: more than {MASKS} different masks in one set")

    def _refuse(self, url: Url, refused: UrlRefused) -> tuple[UrlEntry | None, UrlError | None]:
        self.refused_types += refused.code == _WRONG_TYPE and not self._start.dryrun
        text = f"{text_of(refused.code)}: {refused.detail}" if refused.detail else text_of(refused.code)
        error = UrlError(refused.code, text, fetch_url(url.attributes, self._rules), url.as_sent)
        self._note(url, error)
        if refused.code == _OUTSIDE_ROOTS and self._start.drop_outside and not self._has_former_name(url):
            return None, None
        return self._presence(url) if self._start.full else None, error

    def _has_former_name(self, url: Url) -> bool:
        """Tell whether a URL was inside a root while names were those of IDNA 2003: its document stays."""
        return (
            root_to_add(HttpUrl.parse(fetch_url(url.attributes, self._rules)), self._rules.roots) is not None
        )

    def _note(self, url: Url, error: UrlError) -> None:
        """Keep a refusal, and let go of the oldest ones when they take too much room."""
        readable = readable_key(url.attributes, self._rules)
        curl, mimetype = readable or (with_prefix(self._rules.urlprefix, url.attributes.get("curl", "")), "")
        one = RefusedUrl(curl[:URL_MAX], mimetype, error.url[:URL_MAX], error.code, error.text[:_TEXT_MAX])
        self.refused.append(one)
        self._room -= _size_of(one)
        while self._room < 0:
            self._room += _size_of(self.refused.popleft())

    def _presence(self, url: Url) -> UrlEntry | None:
        """A refused URL of a full set still says that its document exists."""
        key = readable_key(url.attributes, self._rules)
        if key is None:
            self.unreadable += 1
            return None
        present = UrlEntry(*key, Operation.PRESENT)
        try:
            return replace(present, furl=str(HttpUrl.parse(fetch_url(url.attributes, self._rules))))
        except UrlRefused:
            return present


def _size_of(refused: RefusedUrl) -> int:
    return len(refused.curl) + len(refused.mimetype) + len(refused.furl) + len(refused.text)
