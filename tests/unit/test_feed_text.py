"""Texts of documents: what is read in them, and that hostile pages stop nobody."""

import importlib.util
import io
import os
import secrets
import signal
import socket
import subprocess
import sys

import pytest
from test_cli_cursor import document

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.feed import text
from lcc_scrapy.feed.text import NO_TEXT, PageText, TextReader

PAGE = b"""<!DOCTYPE html><html><head><title>The well | Example</title></head><body>
<nav><a href="/">Home</a> <a href="/shop">Buy our shoes</a></nav>
<main><article><h1>The well</h1><p>%s</p></article></main><footer>All rights reserved, again</footer></body></html>"""
STORY = "There was a well in the yard, and nobody knew who had dug it. " * 8
ENDLESS = b"<html><body>" + b"<p>x</p>" * 1_000_000


@pytest.fixture(scope="module")
def shared():
    with TextReader() as made:
        yield made


def read(reader, body, kind="text/html", charset=""):
    row = document(1, fetched_len=len(body), served_type=kind, served_charset=charset)
    return reader.read(row, io.BytesIO(body))


def test_the_main_text_of_a_page_is_read_without_what_stands_around_it(shared):
    found = read(shared, PAGE % STORY.encode())
    assert found.title == "The well"
    assert STORY.strip() in found.text
    assert "shoes" not in found.text
    assert "rights" not in found.text


@pytest.mark.parametrize(
    ("charset", "body"),
    [
        ("iso-8859-15", "5 € déjà".encode("iso-8859-15")),
        ("", "5 € déjà".encode()),
        ("", "5 € déjà".encode("cp1252")),
    ],
)
def test_a_plain_text_is_read_whole_in_its_charset(shared, charset, body):
    assert read(shared, body, "text/plain", charset) == PageText(None, "5 € déjà")


def test_a_page_may_tell_its_charset_itself(shared):
    page = b'<html><head><meta charset="koi8-r"><title>t</title></head><body><p>%s</p></body></html>'
    assert "Колодец" in read(shared, page % ("Колодец во дворе. " * 20).encode("koi8-r")).text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "text/html"), (b"\0" * 1000, "text/html"), (b"<div>" * 50_000, "text/html"), (b"", "text/plain"),
        (b"%PDF-1.7", "application/pdf"), (b"x" * (text.PAGE_MAX + 1), "text/plain"), (b"\xff\xd8", "image/jpeg"),
    ],
)  # fmt: skip
def test_what_has_no_text_has_none(shared, body, kind):
    assert read(shared, body, kind) == NO_TEXT


def test_a_page_that_takes_too_long_has_no_text_and_the_next_one_has():
    with TextReader(seconds=1.5) as reader:
        assert read(reader, PAGE % STORY.encode()).title == "The well"
        before = reader._worker.pid
        assert read(reader, ENDLESS) == NO_TEXT
        assert read(reader, PAGE % STORY.encode()).title == "The well"
        assert reader._worker.pid != before


def test_a_worker_that_hangs_or_is_killed_is_replaced(monkeypatch):
    with TextReader() as reader:
        assert read(reader, b"one", "text/plain").text == "one"
        os.kill(reader._worker.pid, signal.SIGKILL)
        assert read(reader, b"two", "text/plain") == NO_TEXT
        assert read(reader, b"three", "text/plain").text == "three"
        monkeypatch.setattr(text, "PATIENCE", 0.2)
        os.kill(reader._worker.pid, signal.SIGSTOP)
        assert read(reader, b"four", "text/plain") == NO_TEXT


def test_the_worker_has_bounded_memory_and_no_settings(monkeypatch):
    secret = secrets.token_hex(16)
    monkeypatch.setenv("LCC_DATABASE_URL", f"mysql://lcc:{secret}@db/lcc")
    with TextReader() as reader:
        read(reader, b"one", "text/plain")
        proc = f"/proc/{reader._worker.pid}/"
        with open(proc + "limits") as limits, open(proc + "environ") as environment:
            assert f"Max address space         {2 << 30}" in limits.read()
            assert secret not in environment.read()


def test_nothing_in_a_page_leads_to_the_network(shared):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(0.1)
        there = f"http://127.0.0.1:{server.getsockname()[1]}/"
        page = (
            f'<?xml version="1.0"?><!DOCTYPE html SYSTEM "{there}x.dtd" [<!ENTITY e SYSTEM "{there}e">]>'
            f'<html><head><base href="{there}"><link rel="canonical" href="{there}"><meta property="og:url"'
            f' content="{there}"></head><body><iframe src="{there}"></iframe><p>&e;{STORY}</p></body></html>'
        )
        for kind in ("text/html", "application/xhtml+xml"):
            assert "a well in the yard" in read(shared, page.encode(), kind).text
        with pytest.raises(TimeoutError):
            server.accept()


def test_the_network_is_refused_to_the_libraries_too():
    code = (
        "import socket, sys; from lcc_scrapy.feed.text_worker import refuse_network\n"
        "sys.addaudithook(refuse_network); socket.getaddrinfo('localhost', 80)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert "wanted socket.getaddrinfo" in done.stderr


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"lcc-scrapy\[text\]"):
        TextReader()


def test_a_library_that_cannot_be_loaded_is_no_matter_of_pages(monkeypatch, tmp_path):
    (tmp_path / "trafilatura.py").write_text("raise ImportError('half an installation')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with TextReader() as reader, pytest.raises(ConfigurationError, match="cannot be extracted"):
        read(reader, b"one", "text/plain")
