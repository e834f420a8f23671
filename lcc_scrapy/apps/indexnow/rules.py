"""IndexNow: what a submission says, what its key covers, and what a key file proves.

The protocol is that of https://www.indexnow.org/documentation. A site names URLs of its own that were added,
changed or removed, together with a key. A file on the site that holds the key is the proof. The file's folder
is the *scope* of the key: URLs outside it are not the submitter's.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.roots import HttpUrl, Root, compared_path, inside

URLS_MAX = 10_000
"""URLs of one submission, as the protocol has it."""

KEY_MAX = 128
KEY_FILE_MAX = 1024
"""Bytes of a key file that are read; a larger one holds something else."""

SITE_MAX = 270
"""Characters of a host with its port."""

PORTION = 500
"""URLs that are stored, and later queued, together."""

PORTION_BYTES = 4096
"""What a portion counts in addition to its text, so that many small ones are bounded as well."""

OFF, KNOWN, APPROVE, OPEN = "off", "known", "approve", "open"
MODES = (OFF, KNOWN, APPROVE, OPEN)

PENDING, GOOD, BAD = "pending", "good", "bad"

BAD_FORM, WRONG_KEY, NOT_ITS_OWN, TOO_MANY = 400, 403, 422, 429

_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_LOCATION = re.compile(r"https?://[^/?#%\\]+/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[89A-Fa-f][0-9A-Fa-f])*[^/]")
_SLASH = re.compile("/")
_USUAL = frozenset({80, 443})


class NotTaken(LccError):
    """A submission is refused; ``status`` is the protocol's, ``seconds`` (0 = any) when to come again."""

    def __init__(self, status: int, why: str, seconds: int = 0) -> None:
        super().__init__(why)
        self.status = status
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Asked:
    """A submission as it was written. An empty ``host`` is that of the first URL."""

    key: str
    urls: Sequence[str]
    host: str = ""
    location: str = ""
    ignored: tuple[str, ...] = ()
    """Fields of the request that mean nothing here."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission that says something sensible: URLs of one site, below the folder of its key file.

    ``site`` is a host, with its port if that is not a usual one; ``location`` the URL of the key file.
    """

    site: str
    key: str
    location: str
    urls: tuple[str, ...]
    ignored: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The name of this key at this place."""
        return sha256(f"{self.location}\0{self.key}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SiteKey:
    """A key of a site, as it is remembered (table ``indexnow``). Times in epoch seconds, 0 = never.

    ``due``: when a pending key is to be checked again, after ``tries`` checks that said nothing.
    ``since``: from when on it has been pending. ``accepted`` counts URLs that were
    acknowledged, ``refused`` those of them that came to nothing: outside the roots, or of a wrong key.
    """

    digest: str
    site: str
    keytext: str
    location: str
    state: str = PENDING
    since: int = 0
    seen: int = 0
    checked: int = 0
    due: int = 0
    tries: int = 0
    reason: str = ""
    accepted: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Portion:
    """Some URLs of a submission that wait: for the check of their key, then for the queue.

    ``urls`` is a JSON list of ``count``, ``size`` what it counts in bytes, ``digest`` the name of the key.
    """

    portionid: int
    digest: str
    site: str
    at: int
    size: int
    count: int
    urls: str


# --- what is written -----------------------------------------------------------------------------


def read_submission(asked: Asked) -> Submission:
    """Check what was asked; raises ``NotTaken`` 400 or 422."""
    if not _KEY.fullmatch(asked.key):
        raise NotTaken(NOT_ITS_OWN, "key: expected 8 to 128 characters of a-z, A-Z, 0-9 and -")
    if not 1 <= len(asked.urls) <= URLS_MAX:
        raise NotTaken(BAD_FORM, f"expected 1 to {URLS_MAX} URLs")
    urls = tuple(dict.fromkeys(_url(number, text) for number, text in enumerate(asked.urls, 1)))
    site = _site_of(_host(asked.host)) if asked.host else _site_of(urls[0])
    location = _location(asked, site, urls[0])
    around = _around(folder_of(location))
    for number, url in enumerate(urls, 1):
        if _site_of(url) != site:
            raise NotTaken(NOT_ITS_OWN, f"URL {number} is not of the host {site}")
        if not inside(url, around):
            raise NotTaken(NOT_ITS_OWN, f"URL {number} does not lie in the folder of the key file")
    return Submission(site, asked.key, str(location), tuple(map(str, urls)), asked.ignored)


def _url(number: int, text: str) -> HttpUrl:
    try:
        return HttpUrl.parse(text)
    except UrlRefused as error:
        raise NotTaken(BAD_FORM, f"URL {number}: {error.detail or error}") from None


def _host(text: str) -> HttpUrl:
    """Read a host; what clients write around it is left out: a scheme, and the path of a site in a folder."""
    name = (text.partition("://")[2] or text).partition("/")[0]
    try:
        return HttpUrl.parse(f"http://{name}/")
    except UrlRefused as error:
        raise NotTaken(BAD_FORM, f"host: {error.detail or error}") from None


def _site_of(url: HttpUrl) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port in _USUAL else f"{host}:{url.port}"


def _location(asked: Asked, site: str, first: HttpUrl) -> HttpUrl:
    """Return where the key file lies: at the top of the site, by the scheme of the first URL, if not said."""
    text = asked.location or f"{first.scheme}://{site}/{asked.key}.txt"
    if not _LOCATION.fullmatch(text):
        raise NotTaken(
            NOT_ITS_OWN, "keyLocation: expected the URL of a file, without a query and encoded ASCII"
        )
    try:
        location = Root.parse(text).url
    except UrlRefused as error:
        raise NotTaken(NOT_ITS_OWN, f"keyLocation: {error.detail or error}") from None
    if _site_of(location) != site:
        raise NotTaken(NOT_ITS_OWN, f"keyLocation is not of the host {site}")
    return location


def folder_of(location: HttpUrl) -> HttpUrl:
    """Return the folder of a key file: the scope of its key."""
    return replace(location, path=location.path[: location.path.rindex("/") + 1])


def _around(folder: HttpUrl) -> tuple[Root, ...]:
    """Return what the scope is for URLs of both schemes, which a submission may mix."""
    ports = {"http": 80, "https": 443}
    usual = folder.port in _USUAL
    return tuple(
        Root(replace(folder, scheme=scheme, port=port if usual else folder.port))
        for scheme, port in ports.items()
    )


def portions(asked: Submission, now: int) -> Iterator[Portion]:
    """Cut the URLs of a submission into portions, which have no numbers yet."""
    for start in range(0, len(asked.urls), PORTION):
        some = asked.urls[start : start + PORTION]
        text = json.dumps(some)
        yield Portion(0, asked.digest, asked.site, now, len(text) + PORTION_BYTES, len(some), text)


# --- what a key file proves ----------------------------------------------------------------------


def holds_key(body: bytes, key: str) -> bool:
    """Tell whether a file (UTF-8) holds the key, and nothing else but blanks around it."""
    if len(body) > KEY_FILE_MAX:
        return False
    return body.removeprefix(b"\xef\xbb\xbf").strip() == key.encode()


def probe_of(location: str, key: str, other: str) -> str:
    """Return where a site that echoes paths would show ``other`` as it shows the key.

    Empty where the key is no part of the location, so that nothing can be echoed.
    """
    begin = location.index("/", location.index("://") + 3)
    path, count = re.subn(re.escape(key), other, location[begin:], flags=re.IGNORECASE)
    return location[:begin] + path if count else ""


def may_follow(location: HttpUrl, target: HttpUrl) -> bool:
    """Tell whether a key file may be looked for at a redirect's target: the same site and scope."""
    return _site_of(target) == _site_of(location) and inside(target, _around(folder_of(location)))


# --- whose URLs ----------------------------------------------------------------------------------


class Owners:
    """Whose URLs are whose, by the roots of all providers; ``rooted`` are pairs of pid and root.

    A URL is looked for at each of its folders, so that many roots at one host cost nothing for each URL.
    """

    def __init__(self, rooted: Iterable[tuple[int, Root]]) -> None:
        self._at: defaultdict[tuple[str, str], dict[Root, int]] = defaultdict(dict)
        for pid, root in rooted:
            path = compared_path(root.url)
            if path is not None:
                same = self._at[_site_of(root.url), path.rstrip("/")]
                same[root] = min(pid, same.get(root, pid))
        self._lengths = {len(path) for _, path in self._at}

    def of(self, url: HttpUrl) -> int | None:
        """Return the provider with the longest root that covers a URL, the lowest pid of several; or None."""
        site, path = _site_of(url), compared_path(url)
        if path is None:
            return None
        ends = [match.start() for match in _SLASH.finditer(path)]
        for end in (len(path), *reversed(ends)):
            near = self._at.get((site, path[:end]), {}) if end in self._lengths else {}
            if covering := [pid for root, pid in near.items() if root.covers(url)]:
                return min(covering)
        return None


def touches(location: str, root: Root) -> bool:
    """Tell whether a root and the scope of a key have anything in common."""
    folder = folder_of(HttpUrl.parse(location))
    return any(one.covers(root.url) or root.covers(one.url) for one in _around(folder))
