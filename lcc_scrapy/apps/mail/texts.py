"""What providers read: pure text of plain values. What strangers wrote is made visible and shortened."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lcc_scrapy.db.records import LastOutcome
from lcc_scrapy.domain.errors import CODES, Fault, Retried, text_of
from lcc_scrapy.domain.printable import printable, without_passwords

URLS = 20
"""URLs that a digest names."""

CODES_SHOWN = 20
"""Codes that a digest counts one by one; the rarest of more are counted together."""

_URL_MAX = 200
_NAME_MAX = 60
_HTTP_GONE = {404, 410}
_HTTP_FORBIDDEN = {401, 403, 407, 451}
_SERVER_ERRORS = range(500, 600)

_ADVICE = {
    601: "Correct the host name, or push the URLs with the name that works now.",
    602: "Check that your web server runs and that no firewall stops us.",
    603: "Your web server was too slow. We tried several times.",
    604: "These documents are too large for this cache.",
    605: "They redirect to a place outside your roots. Push the final URLs, or ask the operator for a root.",
    606: "They redirect in a circle, or too often.",
    607: "Your web server sends another type than you declared. Push each URL with the type that it sends.",
    608: "Your web server sent other contents than you declared, each time that we asked; you need not push"
    " them again for that. When they are right, push them again, and each is asked for once more.",
    609: "Your quota of documents is used up. Remove some, or ask the operator for more.",
    610: "Your quota of space is used up. Remove documents, or ask the operator for more.",
    611: "Your robots.txt forbids them. Change it, or stop pushing these URLs.",
    612: "The TLS certificate of your web server is not valid, or has expired.",
    613: "Your web server redirects without a usable place to go to.",
    614: "The answers of your web server were cut off or not well-formed.",
    615: "The host name leads to a private address.",
    616: "This is a fault of the cache. You need not do anything.",
    703: "Documents of this type are not accepted here.",
    704: "They are outside of your roots. Ask the operator for a further root.",
    705: "These are no complete URLs of http or https.",
    708: "There is no hour in which they may be fetched.",
}
_MISMATCHING = (
    "Your web server has not sent for long what you declared."
    " Until it does so for one document, we ask for each only once."
)
_OF_PROVIDERS = "Correct what your push program says about them, and push them again."
_OF_SITES = "Look at your web server, then push the URLs again."


@dataclass(frozen=True, slots=True)
class Around:
    """What stands in every mail: the provider, how to end the mail ("" = by asking), and whom to ask."""

    pid: int
    name: str
    link: str
    operator: str


@dataclass(frozen=True, slots=True)
class Written:
    """A mail's subject and text."""

    subject: str
    text: str


def advice(code: int) -> str:
    """Return in a sentence what a provider can do about a code."""
    if code in _ADVICE:
        return _ADVICE[code]
    if code in _HTTP_GONE:
        return "Push their removal, if these documents are gone for good."
    if code in _HTTP_FORBIDDEN:
        return "Your web server lets us not read them. Permit it, or stop pushing these URLs."
    if code in _SERVER_ERRORS:
        return "Your web server failed. Look at its error log."
    return _OF_PROVIDERS if code in CODES and CODES[code].fault is Fault.PROVIDER else _OF_SITES


def digest(
    around: Around,
    counts: Mapping[int, int],
    newest: Sequence[LastOutcome],
    since: int,
    *,
    mismatching: bool = False,
) -> Written:
    """Word a digest of URL errors; ``since`` is in epoch seconds.

    ``mismatching``: so many contents were not as declared that they are not asked for again.
    """
    total = sum(counts.values())
    lines = [
        f"{_urls(total)} of {_name(around)} could not be read since {_moment(since)}.",
        "",
        *_counted(counts),
        *((_MISMATCHING, "") if mismatching else ()),
        f"The newest {len(newest)}:" if len(newest) < total else "In full:",
        "",
        *(line for one in newest for line in _named(one)),
    ]
    return _written(around, f"{_urls(total)} could not be read", lines)


def full_set_wanted(around: Around, reason: str) -> Written:
    """Word the note that a full set is wanted."""
    lines = [
        f"Please push a full set of the URLs of {_name(around)}.",
        "",
        f"The reason is: {printable(reason)}.",
        "A full set names all your documents. Most push programs send one by themselves next time.",
    ]
    return _written(around, "a full set is wanted", lines)


def removals_held(around: Around, held: int) -> Written:
    """Word the note that removals wait for the operator."""
    lines = [
        f"{_documents(held)} of {_name(around)} would be removed, which are unusually many.",
        "",
        "They stay until the operator of the cache agrees.",
        "If you wanted this, please tell the operator. If not, push the documents again.",
    ]
    return _written(around, f"the removal of {_documents(held)} waits", lines)


def _written(around: Around, subject: str, lines: Sequence[str]) -> Written:
    ending = (
        f"To get no more of these mails, open this page: {around.link}"
        if around.link
        else "To get no more of these mails, ask the operator of the cache."
    )
    operator = [f"The operator: {printable(around.operator)}"] if around.operator else []
    foot = ["--", f"You get this mail as provider {around.pid} of a Local Content Cache.", ending, *operator]
    return Written(f"{_name(around)}: {subject}", "\n".join([*lines, "", *foot, ""]))


def _counted(counts: Mapping[int, int]) -> Iterator[str]:
    often = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    for code, count in often[:CODES_SHOWN]:
        yield f"{count} x {code} {text_of(code)}"
        yield f"    {advice(code)}{_again(code)}"
    rest = sum(count for _, count in often[CODES_SHOWN:])
    if rest:
        yield f"{rest} x other codes"
    yield ""


def _again(code: int) -> str:
    tried = code in CODES and CODES[code].retried is not Retried.NOTHING
    return " It was tried again before it was given up." if tried and code not in _ADVICE else ""


def _named(one: LastOutcome) -> Iterator[str]:
    yield f"{one.code}  {_shown(one.furl or one.curl)}"


def _shown(url: str) -> str:
    """Return a URL in one short line, without the password that may be in it."""
    text = printable(without_passwords(url)[: 2 * _URL_MAX])
    return text if len(text) <= _URL_MAX else f"{text[:_URL_MAX]}..."


def _name(around: Around) -> str:
    return printable(around.name)[:_NAME_MAX] or f"provider {around.pid}"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _urls(count: int) -> str:
    return "1 URL" if count == 1 else f"{count} URLs"


def _documents(count: int) -> str:
    return "1 document" if count == 1 else f"{count} documents"
