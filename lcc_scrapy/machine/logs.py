"""Log lines: one form for each, text or JSON, in which nothing foreign can do harm (``LCC_LOG_FORMAT``).

A call that knows what it is about says so by name, ``log.info("login pid=%(pid)d", {"pid": 7})``: in JSON
these are keys. ``extra={"pid": 7}`` does the same for what the text does not name.
"""

import json
import logging
from collections.abc import Mapping
from copy import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter
from scrapy.utils.log import configure_logging, get_scrapy_root_handler

from lcc_scrapy.domain.printable import printable, without_passwords

if TYPE_CHECKING:
    from scrapy.settings import Settings

FIELDS = ("pid", "psetid", "seq", "url", "peer", "code")
"""Provider, set of the queue, number of the login, URL, the other side's address, code of the protocol."""

JSON, TEXT = "json", "text"
_OURS = __name__.partition(".")[0]
_INDENT = "    "


class TextFormatter(logging.Formatter):
    """Writes what another formatter would, with foreign characters escaped and passwords in URLs blanked.

    A message of the LCC's is one line. Those of others, and tracebacks, may have more: these are indented,
    so that none can pass for a message of its own.
    """

    def __init__(self, inner: logging.Formatter | None = None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter("%(asctime)s [%(name)s] %(levelname)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line or lines of a record."""
        shown = copy(record)
        shown.msg, shown.args = _message(record), ()
        shown.exc_info, shown.exc_text = None, _indented(self._trouble(record)) or None
        shown.stack_info = _indented(record.stack_info or "") or None
        return self._inner.format(shown)

    def _trouble(self, record: logging.LogRecord) -> str:
        return self._inner.formatException(record.exc_info) if record.exc_info else record.exc_text or ""


def tells_of_pages() -> bool:
    """Tell whether anybody reads what is logged of every page, at DEBUG; loggers do not know, handlers do."""
    for handler in logging.root.handlers:  # noqa: SIM110 - asked several times for each page
        if handler.level <= logging.DEBUG:
            return True
    return False


class QuietLogFormatter(LogFormatter):
    """Scrapy's log formatter, which makes no messages of single pages and items that nobody will read."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> Any:
        """Return the message of an answer; None above DEBUG."""
        return super().crawled(request, response, spider) if tells_of_pages() else None

    def scraped(self, item: Any, response: Any, spider: Spider) -> Any:
        """Return the message of an item; None above DEBUG."""
        return super().scraped(item, response, spider) if tells_of_pages() else None


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object on one line, all ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": without_passwords(record.getMessage()),
            **_fields(record),
        }
        if record.exc_info or record.exc_text:
            trouble = self.formatException(record.exc_info) if record.exc_info else record.exc_text
            line["exception"] = without_passwords(trouble or "")
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line).replace("\x7f", "\\u007f")


def _message(record: logging.LogRecord) -> str:
    text = without_passwords(record.getMessage())
    if record.name.partition(".")[0] == _OURS:
        return printable(text)
    first, *rest = text.split("\n")
    return "\n".join([printable(first), *(_INDENT + printable(line) for line in rest)])


def _indented(text: str) -> str:
    lines = without_passwords(text).split("\n") if text else []
    return "\n".join(_INDENT + printable(line) for line in lines)


def _fields(record: logging.LogRecord) -> dict[str, str | int]:
    named = record.args if isinstance(record.args, Mapping) else {}
    found = {name: named.get(name, getattr(record, name, None)) for name in FIELDS}
    return {
        name: value if isinstance(value, int) else without_passwords(str(value))
        for name, value in found.items()
        if value is not None
    }


def install(log_format: str) -> None:
    """Let the log be written as ``LCC_LOG_FORMAT`` says.

    Scrapy makes its root handler anew for each crawler, and once more when that begins: to be called after
    both. A project that brings handlers of its own gives them one of the formatters itself.
    """
    handler = get_scrapy_root_handler()
    if handler is None or isinstance(handler.formatter, (TextFormatter, JsonFormatter)):
        return
    handler.setFormatter(JsonFormatter() if log_format == JSON else TextFormatter(handler.formatter))


def begin(settings: "Settings", log_format: str) -> None:
    """Begin to log, for a command that runs for long: what a crawl says, unless a level was asked for."""
    if not settings.getpriority("LOG_LEVEL"):
        settings.set("LOG_LEVEL", "INFO", "command")
    configure_logging(settings)
    install(log_format)
    logging.getLogger("alembic").setLevel(logging.WARNING)
