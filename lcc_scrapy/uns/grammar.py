"""The grammar: which element means what, and where it may stand (design section 4).

Dialect A is a row of root elements, dialect B one ``notify`` document around the same two; beneath
that they differ only in the spelling of attributes. What is unknown is skipped with all that it holds.
"""

from collections.abc import Mapping

from lcc_scrapy.domain.entries import SYNONYMS
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.charsets import Unreadable
from lcc_scrapy.wire.messages import NAMESPACE, Init, Message, SetEnd, SetStart, Url, UrlRun

SET_ID_MAX = 255
NAME_MAX = 255
"""Characters of an unknown name."""
_URL_ATTRIBUTES = ("curl", "burl", "furl", "op", "mimetype", "subtype", "mtime", "len", "md5", "timeofday")
CANONICAL = {name: name for name in _URL_ATTRIBUTES} | SYNONYMS
"""Attributes of a URL that mean something here, in all spellings, and the one that is used from here on."""

_FULL = {"full": True, "complete": True, "partial": False}
_YES = frozenset({"yes", "true", "1"})
_SETS = frozenset({"/set", "/notify/set"})
_INITS = frozenset({"/init", "/notify/init"})
_PLACES = _SETS | _INITS | {"/notify", "/init/provider", "/notify/init/provider"}


class Grammar:
    """Handlers for an XML parser; ``messages`` is where they leave what they understood.

    They raise ``Unreadable`` for what is not this protocol or beyond the limits.
    """

    def __init__(self, limits: Limits) -> None:
        self.messages: list[Message] = []
        self.elements = 0
        self.logged_in = False
        self.spelling: tuple[str, ...] = ()
        """Names of the last URL element and of its attributes, as they stand there."""
        self._limits = limits
        self._ours = {"lococa": True}
        """Prefixes, and whether they stand for this protocol."""
        self._strange: set[str] = set()
        self._place = ""
        self._depth = 0
        self._skipped_from = 0
        self._urls = 0
        self._version = ""
        self._provider: Mapping[str, str] | None = None

    @property
    def between_elements(self) -> bool:
        """Tell whether the stream could end here without cutting anything short."""
        return self._place in {"", "/notify"} and not self._skipped_from

    @property
    def in_set(self) -> bool:
        """Tell whether a URL of a set may begin here."""
        return self._place in _SETS and not self._skipped_from

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self.elements += 1
        self._depth += 1
        if self._depth > self._limits.depth:
            raise Unreadable(f"more than {self._limits.depth} nested elements")
        if len(attributes) > self._limits.attributes:
            raise Unreadable(f"more than {self._limits.attributes} attributes in one element")
        if self._skipped_from:
            self._meet(name, *attributes)
        elif self._place in _SETS and name in {"url", "lococa:url"}:
            self.spelling = (name, *attributes)
            self._url(attributes)
        else:
            self._open(name, attributes)

    def take_run(self, run: UrlRun) -> bool:
        """Take URLs that no parser read; False, and nothing is done, when a set may not have so many."""
        if self._urls + len(run) > self._limits.set_urls:
            return False
        self._urls += len(run)
        self.elements += 2 * len(run)
        self.messages.append(run)
        return True

    def end(self, _name: str) -> None:
        """An element ends; the parser has seen to it that it is the one that began last."""
        self.elements += 1
        if not self._depth:
            raise Unreadable("an element ends that never began")
        if not self._skipped_from:
            self._close()
        elif self._skipped_from == self._depth:
            self._skipped_from = 0
        self._depth -= 1

    def _open(self, name: str, attributes: Mapping[str, str]) -> None:
        local = self._local_name(name, attributes)
        place = f"{self._place}/{local}"
        if local == "url" and self._place in _SETS:
            self._url(attributes)
            return
        if local is None or place not in _PLACES:
            self._meet(name, *attributes)
            self._skipped_from = self._depth
            return
        self._place = place
        if place in _SETS:
            self._set(attributes)
        elif place in _INITS:
            self._provider, self._version = None, attributes.get("version", "")
        elif local == "provider" and self._provider is None:
            self._provider = attributes

    def _close(self) -> None:
        place = self._place
        self._place = place.rpartition("/")[0]
        if place in _SETS:
            self.messages.append(SetEnd())
        elif place in _INITS:
            self.messages.append(self._init())
            self.logged_in = True

    def _init(self) -> Init:
        if self._provider is None:
            raise Unreadable("init without provider")
        provider_id = self._provider.get("id")
        password = self._provider.get("password", self._provider.get("passwd"))
        if provider_id is None or password is None:
            raise Unreadable("provider without id" if provider_id is None else "provider without passwd")
        self._provider = None
        return Init(provider_id, password, self._version)

    def _set(self, attributes: Mapping[str, str]) -> None:
        self.messages.append(set_start(attributes))

    def _url(self, attributes: Mapping[str, str]) -> None:
        self._skipped_from = self._depth
        self._urls += 1
        if self._urls > self._limits.set_urls:
            raise Unreadable(f"more than {self._limits.set_urls} URLs", too_large=True)
        try:
            canonical = {CANONICAL[name]: value for name, value in attributes.items()}
        except KeyError:
            canonical = self._with_strange_names(attributes)
        self.messages.append(Url(canonical, _as_sent(attributes)))

    def _with_strange_names(self, attributes: Mapping[str, str]) -> dict[str, str]:
        canonical = {}
        for name, value in attributes.items():
            if name not in CANONICAL:
                self._meet(name)
            if _can_be_told(name):
                canonical[CANONICAL.get(name, name)] = value
        return canonical

    def _meet(self, *names: str) -> None:
        """Count names that mean nothing here: the parser keeps each of them until the connection ends."""
        self._strange.update(names)
        if len(self._strange) > self._limits.names:
            raise Unreadable(f"more than {self._limits.names} different unknown names")
        if max(map(len, names)) > NAME_MAX:
            raise Unreadable(f"an unknown name of more than {NAME_MAX} characters")

    def _local_name(self, name: str, attributes: Mapping[str, str]) -> str | None:
        """Return the name without prefix when it is ours, else None.

        A declaration holds for the rest of the stream, since the second root element has none of its own.
        """
        for key, value in attributes.items():
            if key == "xmlns" or key.startswith("xmlns:"):
                self._meet(key)
                self._ours[key.partition(":")[2]] = value == NAMESPACE
        prefix, _, local = name.rpartition(":")
        if self._ours.get(prefix, False) or (not prefix and self._depth > 1):
            return local
        if self._depth == 1:
            raise Unreadable(f"not this protocol: element {name[:40]!r}")
        return None


def set_start(attributes: Mapping[str, str]) -> SetStart:
    """Return what the attributes of a set say; raises ``Unreadable``. Unknown ones say nothing."""
    kind = _FULL.get(attributes.get("set", ""))
    if kind is None:
        raise Unreadable("a set says set='full' or set='partial'")
    set_id = attributes.get("id", "")
    if len(set_id) > SET_ID_MAX:
        raise Unreadable(f"set id of more than {SET_ID_MAX} characters")
    return SetStart(
        full=kind,
        urlprefix=attributes.get("urlprefix", ""),
        set_id=set_id,
        ifabsent=attributes.get("ifabsent", "") in _YES,
        drop_outside=attributes.get("outside", "") == "drop",
        dryrun=attributes.get("dryrun", "") in _YES,
    )


def _can_be_told(name: str) -> bool:
    """Tell whether an answer may echo an attribute: a prefixed name would need its declaration there."""
    return ":" not in name and name != "xmlns"


def _as_sent(attributes: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in attributes.items() if _can_be_told(name)}
