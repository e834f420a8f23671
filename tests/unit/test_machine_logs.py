"""What may stand in a log line, and in which form."""

import json
import logging
import re
import sys
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.http import Response

from lcc_scrapy.domain.printable import printable, without_passwords
from lcc_scrapy.machine import logs
from lcc_scrapy.machine.logs import JsonFormatter, TextFormatter

HOSTILE = {
    "escape": ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
    "line end": ("a\nb\r\nc", "a\\nb\\r\\nc"),
    "C1": ("\x85\x9b31m", "\\x85\\x9b31m"),
    "delete": ("\x7f", "\\x7f"),
    "line separators": ("\u2028\u2029", "\\u2028\\u2029"),
    "bidi": ("\u202eexe.txt\u2066", "\\u202eexe.txt\\u2066"),
    "surrogate": ("\udcff", "\\udcff"),
    "nul": ("\0", "\\x00"),
}
FORGED = "x\n2026-11-21 12:00:00 [lcc_scrapy.uns.spool] INFO: uns login pid=1"


def record(message, *args, name="lcc_scrapy.uns.spool", exc_info=None, **extra):
    made = logging.getLogger(name).makeRecord(
        name, logging.WARNING, "file.py", 1, message, args, exc_info, extra=extra or None
    )
    made.created = 1795262400.25  # 2026-11-21 12:00:00.25 UTC
    return made


def raised(text):
    try:
        raise ValueError(text)
    except ValueError:
        return sys.exc_info()


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", ["lcc_scrapy.uns.spool", "scrapy.core.scraper"])
def test_nothing_that_steers_a_terminal_gets_into_a_line(hostile, name):
    text, shown = HOSTILE[hostile]
    line = TextFormatter().format(record("url %s", text, name=name))
    if name.startswith("lcc_scrapy"):
        assert line.endswith(f"WARNING: url {shown}")
    assert all(char.isprintable() or char == "\n" for char in line)


@pytest.mark.parametrize("name", ["lcc_scrapy.uns.spool", "scrapy.core.scraper", "twisted"])
def test_no_line_can_be_forged(name):
    said = TextFormatter().format(record("%s", FORGED, name=name, exc_info=raised(FORGED)))
    assert len([line for line in said.split("\n") if re.match(r"\d{4}-", line)]) == 1


def test_a_line_looks_as_scrapy_was_told(caplog):
    inner = logging.Formatter("%(asctime)s <%(name)s> %(message)s", "%Y")
    assert TextFormatter(inner).format(record("a=%d", 1)) == "2026 <lcc_scrapy.uns.spool> a=1"


def test_a_record_is_as_it_was_for_other_handlers():
    made = record("%s", "\x1b", exc_info=raised("x"))
    TextFormatter().format(made)
    assert made.args == ("\x1b",)
    assert made.exc_text is None


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=50))
def test_a_json_line_is_one_object_of_plain_ascii_that_says_what_was_said(text):
    line = JsonFormatter().format(record("%(url)s", {"url": text}, exc_info=raised(text)))
    assert line.isascii()
    assert line.isprintable()
    if "://" not in text:
        said = json.loads(line)
        assert said["message"] == said["url"] == text
        assert said["exception"].startswith("Traceback")


def test_a_json_line_names_what_the_call_knows():
    what = {"pid": 7, "seq": 3, "peer": "192.0.2.1", "code": 101, "id": "no field of ours"}
    line = json.loads(JsonFormatter().format(record("pid=%(pid)d", what, url="http://a/", psetid=9)))
    assert {name: line[name] for name in logs.FIELDS} == {
        "pid": 7, "psetid": 9, "seq": 3, "url": "http://a/", "peer": "192.0.2.1", "code": 101,
    }  # fmt: skip
    assert "id" not in line
    assert (line["level"], line["logger"], line["message"]) == (
        "WARNING",
        "lcc_scrapy.uns.spool",
        "pid=7",
    )


def test_a_json_line_says_when_with_the_zone():
    line = json.loads(JsonFormatter().format(record("x")))
    assert line["time"] == "2026-11-21T12:00:00.250+00:00"
    assert datetime.fromisoformat(line["time"]).utcoffset() == timedelta(0)


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_passwords_of_urls_are_blanked_wherever_they_stand(formatter):
    url = "mysql://lcc:CANARY@db/lcc"
    line = formatter.format(record("%(url)s", {"url": url}, exc_info=raised(f"no {url}")))
    assert "CANARY" not in line
    assert "mysql://lcc:***@db/lcc" in line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mysql://lcc:a@b@db/x", "mysql://lcc:***@db/x"),
        ("http://u:p@h/ and http://v:q@h/", "http://u:***@h/ and http://v:***@h/"),
        ("postgresql+psycopg://:p@h", "postgresql+psycopg://:***@h"),
        ("http://h:80/a@b", "http://h:80/a@b"),
        ("http://h/a:b@c", "http://h/a:b@c"),
        ("http://u@h:80/", "http://u@h:80/"),
        ("a:b@c", "a:b@c"),
    ],
)
def test_a_password_is_what_stands_before_the_host(text, shown):
    assert without_passwords(text) == shown


@given(st.text())
def test_what_is_printable_stays_as_it_is(text):
    assert printable(text).isprintable()
    if text.isprintable():
        assert printable(text) == text


@pytest.mark.parametrize(("level", "told"), [(logging.INFO, False), (logging.DEBUG, True)])
def test_what_is_said_of_pages_is_made_where_a_handler_takes_it(
    monkeypatch: pytest.MonkeyPatch, level: int, told: bool
) -> None:
    handler = logging.NullHandler(level)
    monkeypatch.setattr(logging.root, "handlers", [handler])
    page = Response("http://a/"), Request("http://a/")
    said = logs.QuietLogFormatter().crawled(page[1], page[0], Spider("a"))
    assert (said is not None) == told
    assert (logs.QuietLogFormatter().scraped({}, page[0], Spider("a")) is not None) == told
