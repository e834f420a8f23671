"""An LCC that means ill: what it costs ``lcc-push`` in bytes, memory and seconds, and what it gets to know."""

import json
import re
import selectors
import socket
import ssl
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest

from lcc_scrapy.push import answer_room, answers, link, web
from lcc_scrapy.push.answers import AnswerReader, NotAnAnswer
from lcc_scrapy.push.client import Address, Conversation
from lcc_scrapy.push.http_push import HttpConversation
from lcc_scrapy.push.link import Lost, Unreachable
from lcc_scrapy.push.servers import named_by
from lcc_scrapy.push.web import HttpUrl
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import Init, InitAccepted, Quota, SetAccepted, SetStart, UrlError
from tests.certificates import Authority
from tests.component.test_lcc_push import SITE, Owner
from tests.component.test_lcc_push_init import Office
from tests.http_lcc import HttpLcc

MB = 1 << 20
PIECE = 16 * 1024
LOGIN = writing.init_accepted(InitAccepted(1, "", ("text/*",), Quota()))
RESULT = b"<lococa:set_result><errors>"
MIME = b"<lococa:init_accepted>"
EARLIER = MIME + b'<processing_status errors="1" processing="0"><errors>'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n"


def endless(once: bytes, again: bytes) -> Iterator[bytes]:
    """Yield pieces of one stream without an end."""
    yield once
    block = again * max(1, PIECE // len(again))
    while True:
        yield block


def numbered(once: bytes, again: str) -> Iterator[bytes]:
    yield once
    for number in count():
        yield "".join(again % (1000 * number + one) for one in range(1000)).encode()


ENDLESS: dict[str, tuple[Callable[[], Iterator[bytes]], int]] = {
    "blanks": (lambda: endless(b"", b" "), answer_room.ANSWER_MAX),
    "comments": (lambda: endless(MIME, b"<!-- -->"), answers.TOKEN_MAX),
    "one comment": (lambda: endless(MIME + b"<!--", b"x"), answers.TOKEN_MAX),
    "one text": (lambda: endless(MIME, b"x"), answers.TOKEN_MAX),
    "one tag": (lambda: endless(b"<", b"x"), answers.TOKEN_MAX),
    "one attribute": (lambda: endless(MIME + b'<a b="', b"x"), answers.TOKEN_MAX),
    "attributes": (lambda: numbered(MIME + b"<a", ' a%d=""'), answers.TOKEN_MAX),
    "instructions": (lambda: endless(MIME, b"<?a b?>"), answers.TOKEN_MAX),
    "elements": (lambda: endless(MIME, b"<a/>"), answer_room.ANSWER_MAX),
    "elements with text": (lambda: endless(MIME, b"<a>" + b"x" * 5000 + b"</a>"), answer_room.ANSWER_MAX),
    "empty documents": (lambda: endless(b"", b"<init_rejected/>"), answer_room.ANSWER_MAX),
    "documents": (lambda: endless(b"", LOGIN), answer_room.ANSWER_MAX + answer_room.MIMETYPES_MAX),
    "blanks between documents": (
        lambda: endless(LOGIN, b" " * 10_000 + b"<set_result></set_result>"),
        answer_room.ANSWER_MAX,
    ),
    "blanks in end tags": (
        lambda: endless(LOGIN, b"<set_result></set_result" + b" " * 10_000 + b">"),
        answer_room.ANSWER_MAX,
    ),
    "results": (lambda: endless(LOGIN, b"<set_result></set_result>"), answer_room.ANSWER_MAX),
    "types": (lambda: endless(MIME, b"<mime>text/html</mime>"), answer_room.MIMETYPES_MAX),
    "long types": (lambda: endless(MIME, b"<mime>" + b"x" * 100_000 + b"</mime>"), answer_room.MIMETYPES_MAX),
    "earlier errors": (lambda: endless(EARLIER, b'<url code="404" url="u">n</url>'), answer_room.ERRORS_MAX),
    "long earlier errors": (
        lambda: endless(EARLIER, b'<url code="404" url="%s">n</url>' % (b"u" * 100_000)),
        answer_room.ERRORS_MAX,
    ),
    "refused URLs": (lambda: endless(RESULT, b'<url code="704" url="u">n</url>'), answer_room.ANSWER_MAX),
    "elements of a result": (lambda: endless(RESULT, b"<a/>"), answer_room.ANSWER_MAX),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_an_end_is_bounded_in_bytes_and_memory(kind):
    made, most = ENDLESS[kind]
    reader, taken = AnswerReader(), 0
    tracemalloc.start()
    try:
        with pytest.raises(NotAnAnswer):  # noqa: PT012 - the stream has no other end
            for piece in made():
                taken += len(piece)
                assert taken <= most + 4 * answers.TOKEN_MAX, "it is read on and on"
                reader.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * MB


def test_what_honest_servers_answer_at_most_is_read():
    """Ten thousand types, five hundred earlier errors, and each URL of a set refused with all it has."""
    error = {"curl": "http://www.example.org/" + "&" * 300, "mimetype": "text/html", "len": "1" * 19}
    types = tuple(f"application/x-{number}" for number in range(10_000))
    earlier = tuple(UrlError(404, "Not Found", error["curl"], error) for _ in range(500))
    reader = AnswerReader()
    (login,) = reader.feed(writing.init_accepted(InitAccepted(1, "", types, Quota(), 500, 0, earlier)))
    assert login.mimetypes == types
    assert 0 < len(login.errors) < login.error_count == 500, "what is not kept is counted"

    prefix = "http://www.example.org/" + "p" * 2000 + "/"
    lines = [writing.url({"curl": "a", "mimetype": "t/p"}), writing.url(error)] * 1000
    reader.is_sent(writing.set_start(SetStart(full=True, urlprefix=prefix)) + b"".join(lines))
    said = [writing.set_result_start()]
    for number in range(2000):
        given = {"curl": "a", "mimetype": "t/p"} if number % 2 == 0 else error
        url = prefix + given["curl"] if number % 2 == 0 else given["curl"]
        said.append(writing.url_error(UrlError(704, "URL outside the provider's roots", url, given)))
    found = reader.feed(b"".join([*said, writing.set_result_end(SetAccepted(0))]))
    assert (len(found), found[-1]) == (2001, SetAccepted(0))


def test_more_urls_are_not_refused_than_were_sent():
    reader = AnswerReader()
    reader.is_sent(b"<set>\n" + b"<url/>\n" * 3)
    error = b'<url code="1" curl="a"/>'
    assert len(reader.feed(RESULT + error * 4)) == 4
    with pytest.raises(NotAnAnswer, match="more URLs are refused"):
        reader.feed(error + b"<a/>")


@pytest.mark.parametrize("field", ["code", "retry-after"])
def test_a_number_without_an_end_is_none(field):
    with pytest.raises(NotAnAnswer):
        AnswerReader().feed(b'<init_rejected><reason %s="%s"/>' % (field.encode(), b"9" * 4000))


# --- deadlines, by a clock of the test's ---------------------------------------------------------


class Drip:
    """A server that does one thing at each look at the clock, which is ``step`` seconds later each time."""

    def __init__(self, step: float, act: Callable[[socket.socket, int], None]) -> None:
        self.here, self.there = socket.socketpair()
        self.there.setblocking(False)
        self._step, self._act = step, act
        self.now, self.looks = 0.0, 0

    def __call__(self) -> float:
        self.now += self._step
        self.looks += 1
        assert self.looks < 100_000, "it never ends"
        with suppress(BlockingIOError, OSError):
            self._act(self.there, self.looks)
        return self.now

    def close(self) -> None:
        self.here.close()
        self.there.close()


@contextmanager
def drip(step: float, act: Callable[[socket.socket, int], None]) -> Iterator[Drip]:
    made = Drip(step, act)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("timeout", [5.0, 60.0, 300.0])
def test_an_answer_that_drips_ends_in_time(timeout):
    with drip(1.0, lambda there, _: there.send(b" ")) as server:
        talk = Conversation(server.here, timeout, server)
        with pytest.raises(Lost, match="did not end its answer"):
            talk.login(Init("7", "secret"))
    assert server.now <= max(timeout, link.ANSWER_SECONDS) + 10


def test_a_silent_server_ends_after_the_timeout(monkeypatch):
    waits: list[float] = []

    class Selector(selectors.SelectSelector):
        def select(self, timeout=None):
            waits.append(timeout)
            return []

    monkeypatch.setattr(selectors, "DefaultSelector", Selector)
    with drip(0.0, lambda _there, _: None) as server:
        with pytest.raises(Lost, match="did not answer for 5 seconds"):
            Conversation(server.here, 5.0, server).login(Init("7", "secret"))
        assert waits == [5.0]


def test_a_server_that_drips_and_takes_nothing_of_a_set_ends_at_the_timeout():
    def act(there: socket.socket, look: int) -> None:
        there.send(LOGIN if look == 1 else b"\n")

    with drip(0.5, act) as server:
        talk = Conversation(server.here, 5.0, server)
        assert talk.login(Init("7", "secret")).seq == 1
        begun = server.now
        with pytest.raises(Lost, match="did not answer for 5 seconds"):
            talk.submit(SetStart(full=True), (b"x" * 65_536 for _ in range(10_000)), lambda _: None)
        assert 5 <= server.now - begun < 60


def test_nobody_waits_for_the_goodbye_of_a_server_that_talks_nonsense(monkeypatch):
    waited = []
    monkeypatch.setattr(link.Link, "_part", lambda one: waited.append(one) or one)
    for said, polite in ((b"<html>", 0), (b"<init_rejected><reason code='101'/></init_rejected>", 1)):
        with drip(0.1, lambda there, look, said=said: there.send(said) if look == 1 else None) as server:
            talk = Conversation(server.here, 5.0, server)
            with suppress(Unreachable):
                talk.login(Init("7", "secret"))
            talk.close()
        assert len(waited) == polite


def test_a_slow_upload_of_ours_is_not_cut():
    """The server takes a little every four seconds, for longer than any answer may take."""
    taken = 0

    def act(there: socket.socket, look: int) -> None:
        nonlocal taken
        if look == 1:
            there.send(LOGIN)
        with suppress(BlockingIOError):
            data = there.recv(65_536)
            taken += len(data)
            if data.endswith(b"</lococa:set>\n"):
                there.send(b"<set_result><set_accepted received='1'/></set_result>")

    with drip(4.0, act) as server:
        talk = Conversation(server.here, 5.0, server)
        talk.login(Init("7", "secret"))
        verdict = talk.submit(SetStart(full=True), (b"x" * (8 * MB) for _ in range(3)), lambda _: None)
    assert verdict == SetAccepted(1)
    assert taken > 24 * MB
    assert server.now > 10 * link.ANSWER_SECONDS


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
HTTP_DRIPS = {
    "a head": (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": (HEAD + b"\r\n", b" "),
    "chunks": (CHUNKED, b"1\r\n \r\n"),
    "one chunk's size": (CHUNKED + b"1;", b"x"),
    "no XML": (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
}


@pytest.mark.parametrize("kind", HTTP_DRIPS)
def test_an_answer_over_http_that_drips_ends_in_time(kind, monkeypatch):
    once, again = HTTP_DRIPS[kind]

    def act(there: socket.socket, look: int) -> None:
        there.send(once + again if look == 1 else again)

    with drip(1.0, act) as server:
        monkeypatch.setattr(link, "connect", lambda *_: server.here)
        talk = HttpConversation(HttpUrl.parse("http://127.0.0.1/"), web.Dial(5.0, clock=server))
        with pytest.raises((Lost, Unreachable)):
            talk.login(Init("7", "secret"))
    assert server.now <= link.ANSWER_SECONDS + 10


def test_chunks_say_a_bounded_amount_besides_their_bytes(monkeypatch):
    sent = 0

    def act(there: socket.socket, look: int) -> None:
        nonlocal sent
        sent += there.send(CHUNKED if look == 1 else b"1;" + b"x" * 10_000 + b"\r\n \r\n")

    with drip(0.001, act) as server:
        monkeypatch.setattr(link, "connect", lambda *_: server.here)
        talk = HttpConversation(HttpUrl.parse("http://127.0.0.1/"), web.Dial(5.0, clock=server))
        with pytest.raises(Unreachable, match="bytes of headers"):
            talk.login(Init("7", "secret"))
    assert sent < 2 * MB


def test_the_addresses_of_a_host_are_tried_for_a_bounded_time(monkeypatch):
    now, tried = [0.0], []

    class Deaf:
        def __init__(self, *_):
            pass

        def settimeout(self, seconds):
            self.seconds = seconds

        def connect(self, place):
            tried.append(place)
            now[0] += self.seconds
            raise TimeoutError

        def close(self):
            pass

    place = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 9000))
    monkeypatch.setattr(link.socket, "getaddrinfo", lambda *_args, **_options: [place] * 1000)
    monkeypatch.setattr(link.socket, "socket", Deaf)
    monkeypatch.setattr(link.time, "monotonic", lambda: now[0])
    with pytest.raises(Unreachable):
        link.connect("lcc.example.org", 9000, 5.0)
    assert (len(tried), now[0]) == (24, link.ANSWER_SECONDS)


# --- the whole command ---------------------------------------------------------------------------


class Recorder:
    """A socket that keeps what it gets, and answers with ``said``."""

    def __init__(self, said: Callable[[], Iterator[bytes]] = lambda: iter(())) -> None:
        self._said = said
        self.got = bytearray()
        self.visits = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.visits += 1
            with connection, suppress(OSError):
                connection.settimeout(30)
                self.got += connection.recv(65_536)
                for piece in self._said():
                    connection.sendall(piece)

    def __exit__(self, *_):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(30)


@pytest.fixture
def owner(tmp_path):
    with HttpLcc() as lcc:
        made = Owner(tmp_path, lcc)
        made.docroot.mkdir()
        made.configure()
        made.write("index.html")
        yield made


@pytest.mark.parametrize("kind", ["long types", "long earlier errors", "documents"])
def test_the_command_stays_small_at_a_hostile_server(owner, kind):
    with Recorder(ENDLESS[kind][0]) as server:
        owner.configure(server=f"lcc://127.0.0.1:{server.port}", timeout="5")
        process = subprocess.run(
            [sys.executable, "-c", _MEASURED, "--config", str(owner.config)],
            capture_output=True, timeout=300, check=False, text=True,
        )  # fmt: skip
    assert process.returncode in {69, 75}, process.stderr
    peak = int(re.search(r"VmHWM:\s*(\d+)", process.stdout)[1]) / 1024
    print(f"{kind}: {peak:.0f} MB")
    assert peak < 48, "MB, of which the interpreter takes about 22"


_MEASURED = """
import sys
from lcc_scrapy.push.lcc_push import main
status = main(sys.argv[1:])
print(open("/proc/self/status").read())
sys.exit(status)
"""


# --- the password --------------------------------------------------------------------------------


@pytest.fixture
def safe_owner(tmp_path):
    """The owner of a site whose LCC has a certificate."""
    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    folder = authority.issue("127.0.0.1").write(tmp_path / "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with HttpLcc() as lcc:
        lcc.wrap(context)
        made = Owner(tmp_path, lcc)
        made.docroot.mkdir()
        made.write("index.html")
        yield made


def named(port: int) -> dict[str, object]:
    """Return what a hostile LCC may name, with the port of a socket that records."""
    host = f"127.0.0.1:{port}"
    return {
        "a bare socket": {"uns": [host]},
        "a socket in clear": {"uns": [f"lcc://{host}"]},
        "a URL in clear": {"url": f"http://{host}/"},
        "a URL in clear and a socket": {"url": f"http://{host}/v1/push", "uns": [host]},
        "a line more": {"uns": [f"{host}\npassword_file = /etc/passwd"]},
        "a section more": {"uns": [f"{host}\n[lcc-push]\nserver = {host}"]},
        "a line more in a URL": {"url": f"https://{host}/\nserver = {host}"},
        "control characters": {"url": f"https://{host}/\x1b[2J\x00"},
        "a name in a URL": {"url": f"https://x@{host}/"},
        "a fragment": {"url": f"https://{host}/#"},
        "blanks": {"uns": [f"lccs://a b {host}"]},
        "no text": {"url": 5, "uns": [None, {}, [host]]},
        "no list": {"uns": host},
        "another scheme": {"uns": [f"file://{host}", f"LCC://{host}", f"//{host}"]},
        "nothing": None,
    }


@pytest.mark.parametrize("kind", named(0))
def test_no_byte_of_the_password_goes_from_tls_to_plain(safe_owner, kind):
    owner = safe_owner
    office = Office(owner.lcc, owner.docroot)
    with Recorder() as wire:
        activate = office.activate

        def hostile(handler, body):
            status, headers, data = activate(handler, body)
            facts = json.loads(data)
            return status, headers, json.dumps({**facts, "push": named(wire.port)[kind]}).encode()

        office.activate = hostile
        words = ("init", owner.lcc.url, str(owner.docroot), SITE, "--ca", str(owner.home / "ca.pem"))
        status, said = owner(*words)
        assert status == 0, said
        config = owner.config.read_text()
        assert f"server = {owner.lcc.url}\n" in config, "the server that the user named"
        assert config.count("\n") == 8, config
        assert not re.search(r"[^ -~\n]", said + config)
        owner.lcc.password = office.pairs["7"]["password"]
        owner.lcc.seq = 0
        assert owner()[0] == 0
    assert wire.visits == 0
    assert not wire.got


def test_a_server_with_tls_that_the_lcc_names_is_taken():
    lcc = HttpUrl.parse("https://lcc.example.org/")
    for text, written in (
        ("lccs://uns.example.org", "lccs://uns.example.org:9000"),
        ("lccs://[2001:db8::1]:9", "lccs://[2001:db8::1]:9"),
        ("https://push.example.org/", "https://push.example.org/v1/push"),
        ("https://push.example.org/v1/push", "https://push.example.org/v1/push"),
    ):
        assert named_by(lcc, text) == written
    here = HttpUrl.parse("http://127.0.0.1:8080/")
    assert named_by(here, "127.0.0.1:9000") == "127.0.0.1:9000", "nothing of it leaves this machine"
    for text in ("uns.example.org:9000", "http://push.example.org/", "192.0.2.1:9000"):
        with pytest.raises(ValueError, match=re.escape(text)):
            named_by(here, text)


@pytest.mark.parametrize(
    ("server", "warned"),
    [
        ("lcc.invalid", True), ("lcc.invalid:9000", True), ("[2001:db8::1]:9", True), ("192.0.2.1:1", True),
        ("lcc://lcc.invalid", False), ("lccs://lcc.invalid", False), ("https://lcc.invalid/", False),
        ("127.0.0.1:1", False), ("localhost:1", False), ("[::1]:1", False),
    ],
)  # fmt: skip
def test_a_bare_remote_host_warns_at_every_run(owner, server, warned, monkeypatch, capsys):
    from lcc_scrapy.push import lcc_push

    def away(*_args, **_options):
        raise Unreachable("away")

    monkeypatch.setattr(link, "connect", away)
    owner.configure(server=server)
    for _ in range(2):
        assert lcc_push.main(["--config", str(owner.config), "--quiet"]) == 69
        said = capsys.readouterr().err
        assert ("in clear" in said) == warned, said
        assert not warned or f"lccs://{server}" in said


def test_a_password_is_not_sent_in_clear_over_a_network_by_http(owner):
    for server in ("http://lcc.invalid/", "http://192.0.2.1/", "http://127.0.0.1.lcc.invalid/"):
        owner.configure(server=server)
        status, said = owner()
        assert (status, "in clear" in said) == (64, True), said


def test_a_server_name_holds_nothing_but_a_name():
    for text in (
        "a b",
        "a\nb:1",
        "a\x00",
        "a\x1b[2J:1",
        "x@a:1",
        "a/b:1",
        "",
        ":1",
        "a:\uff11",
        "a:0",
        "[::1",
        "[::1]x",
    ):
        with pytest.raises(ValueError):
            Address.parse(text)
    for text in ("https://a\x1b/", "https://h/\x7f", "https://h/\x00", "https://a\u00fc/", "https://a b/"):
        with pytest.raises(ValueError):
            HttpUrl.parse(text)


def test_the_proof_is_a_file_of_the_docroot_whatever_the_lcc_calls_it(owner):
    for name in ("../x.txt", "/etc/x.txt", ".htaccess", "a\nb.txt", "x.php", "\x1b.txt", "x.txt\n", ""):
        said = json.dumps({"pid": 7, "secret": "s" * 9, "password": "p" * 9, "file": name}).encode()
        owner.lcc.before = lambda *_, said=said: (201, {}, said)
        owner.config.unlink(missing_ok=True)
        assert owner("init", owner.lcc.url, str(owner.docroot), SITE)[0] == 69, name
        assert not owner.config.exists()
    assert [path.name for path in owner.docroot.iterdir()] == ["index.html"]
