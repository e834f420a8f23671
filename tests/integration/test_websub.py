"""WebSub: a hub and a real ``lcc web``. The subscriber's cases of the W3C's test suite; a changed entry is cached."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore
from tests.harness import Lcc, wait_for
from tests.integration.hub import Hub, ask
from tests.integration.site import Answer, Site, page
from tests.integration.test_sources import Scene
from tests.ports import free_port
from tests.push_process import PushServer, push_server

ATOM = "application/atom+xml"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


class Subscribed(Scene):
    """A scene whose site has a feed; ``lcc web`` serves the callbacks."""

    def __init__(self, make_lcc: Callable[..., Lcc], site: Site, hub: Hub, **settings: str) -> None:
        self.port = free_port()
        super().__init__(make_lcc, site, LCC_PUBLIC_URL=f"http://127.0.0.1:{self.port}", **settings)
        self.hub = hub
        port = int(hub.url.split(":")[2].split("/")[0])
        roots = [self.root, f"http://127.0.0.1:{port}/"]
        store = SqlStore(self.lcc.shared_url)
        with store.begin() as tx:  # so that the hub's address, which is private here, may be asked
            tx.replace_roots(7, roots)
        store.close()

    def feed(self, *names: str, hub: bool = True, **times: str) -> str:
        links = f'<link rel="hub" href="{self.hub.url}"/>' if hub else ""
        entries = [
            f'<entry><id>{name}</id><link href="{self.root}{name}"/><updated>{times.get(name, "1")}</updated></entry>'
            for name in names
        ]
        topic = f'<link rel="self" href="{self.host}/feed"/>'
        return f'<feed xmlns="http://www.w3.org/2005/Atom">{links}{topic}{"".join(entries)}</feed>'

    def callbacks(self) -> AbstractContextManager[PushServer]:
        return push_server(self.lcc, LCC_PUSH_ENDPOINTS=f"127.0.0.1:{self.port}")

    def subscribe(self, *names: str) -> None:
        self.site.put("/feed", page(self.feed(*names), content_type=ATOM))
        self.add("websub", "/feed")
        self.run()

    def leases(self) -> list[tuple[object, ...]]:
        return self.lcc.sql("select lease > 0, asked from sources")


@pytest.fixture
def scene(make_lcc: Callable[..., Lcc], site: Site, hub: Hub) -> Subscribed:
    return Subscribed(make_lcc, site, hub)


@pytest.mark.parametrize("where", ["header", "page", "feed"])
def test_the_hub_is_found_in_link_headers_pages_and_feeds(scene: Subscribed, where: str) -> None:
    if where == "header":
        link = f'<{scene.hub.url}>; rel="hub", <{scene.host}/topic>; rel=self'
        answer = page(scene.feed("a", hub=False), content_type=ATOM, link=link)
    elif where == "page":
        head = f'<link rel=hub href="{scene.hub.url}"><link rel=self href="/topic">'
        answer = page(f"<!doctype html><html><head>{head}</head><body>news</body></html>")
    else:
        answer = page(scene.feed("a"), content_type=ATOM)
    scene.site.put("/feed", answer)
    scene.add("websub", "/feed")
    assert scene.run()["error"] == ""
    topic = "/feed" if where == "feed" else "/topic"
    assert scene.hub.last["hub.mode"] == "subscribe"
    assert scene.hub.last["hub.topic"] == f"{scene.host}{topic}"
    assert scene.hub.last["hub.callback"].startswith(f"http://127.0.0.1:{scene.port}/v1/websub/")
    assert len(scene.hub.last["hub.secret"]) > 30


@pytest.mark.parametrize("status", [307, 308])
def test_a_hub_that_has_moved_is_asked_where_it_is_now(scene: Subscribed, status: int) -> None:
    scene.hub.moved["/hub"] = (status, "/elsewhere")
    scene.subscribe("a")
    assert scene.hub.paths == ["/hub", "/elsewhere"]
    assert scene.hub.last["hub.mode"] == "subscribe"


def test_only_what_was_asked_for_is_confirmed(scene: Subscribed) -> None:
    scene.subscribe("a")
    with scene.callbacks():
        assert scene.hub.verify(topic="http://other/")[0] == 404
        assert scene.hub.verify(mode="unsubscribe")[0] == 404
        assert scene.hub.verify(challenge="")[0] == 404
        assert scene.leases() == [(0, "subscribe")]
        assert scene.hub.verify() == (200, "prove it")
        assert scene.leases() == [(1, "")]
        assert scene.hub.verify()[0] == 404
        assert ask(f"http://127.0.0.1:{scene.port}/v1/websub/unknown?hub.mode=subscribe")[0] == 404
        assert ask(f"http://127.0.0.1:{scene.port}/v1/websub/unknown", b"x")[0] == 404


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_content_is_taken_in_if_it_is_signed(scene: Subscribed, method: str) -> None:
    scene.subscribe("a")
    header = "X-Hub-Signature-256" if method == "sha256" else "X-Hub-Signature"
    with scene.callbacks():
        scene.hub.verify()
        assert scene.hub.send(scene.feed("a", "b"), method=method, header=header) == 202
        assert scene.waiting() == {"a", "b"}
        assert scene.sets() == [1, 1]
        assert scene.hub.send(scene.feed("a", "b"), method=method) == 202
        assert scene.sets() == [1, 1]


def test_content_with_a_wrong_signature_or_none_is_ignored(scene: Subscribed) -> None:
    scene.subscribe("a")
    with scene.callbacks():
        scene.hub.verify()
        for secret in ("another secret", ""):
            assert scene.hub.send(scene.feed("a", "evil"), secret=secret) == 202
        callback = scene.hub.last["hub.callback"]
        for signature in ("md5=" + 32 * "0", "sha256=", "sha256=zz", "x" * 9000):
            assert ask(callback, b"x", {"X-Hub-Signature": signature})[0] == 202
        assert ask(callback, bytes(5_000_001))[0] == 413
    assert scene.waiting() == {"a"}


def test_a_ping_without_content_lets_the_topic_be_fetched(scene: Subscribed) -> None:
    scene.subscribe("a")
    with scene.callbacks():
        scene.hub.verify()
        scene.site.put("/feed", page(scene.feed("a", "b"), content_type=ATOM))
        assert scene.hub.send("look again") == 202
        wait_for(lambda: scene.waiting() == {"a", "b"}, 30, "the topic")
        wait_for(lambda: scene.lcc.sql("select owner from sources") == [("",)], 30, "the run to end")


def test_a_ping_while_the_topic_is_fetched_has_it_fetched_again(scene: Subscribed) -> None:
    scene.subscribe("a")
    held = threading.Event()
    before = page(scene.feed("a"), content_type=ATOM)
    after = page(scene.feed("a", "b"), content_type=ATOM)
    with scene.callbacks():
        scene.hub.verify()
        scene.site.visits.clear()
        scene.site.put("/feed", Answer(before.pieces, last=False, held=held), after)
        try:
            assert scene.hub.send("look again") == 202
            wait_for(lambda: scene.site.asked("/feed"), 30, "the first look")
            for _ in range(20):
                assert scene.hub.send("look again") == 202
        finally:
            held.set()
        wait_for(lambda: scene.waiting() == {"a", "b"}, 30, "the second look")
        wait_for(lambda: scene.lcc.sql("select owner from sources") == [("",)], 30, "the run to end")
    assert len(scene.site.asked("/feed")) == 2


def test_a_ping_that_was_acknowledged_outlives_the_process_that_took_it(scene: Subscribed) -> None:
    scene.subscribe("a")
    held = threading.Event()
    scene.site.put("/feed", Answer(page("").pieces, held=held), page(scene.feed("a", "b"), content_type=ATOM))
    try:
        with scene.callbacks() as server:
            scene.hub.verify()
            assert scene.hub.send("look again") == 202
            server.kill()
            ((due,),) = scene.lcc.sql("select due from sources")
            assert int(str(due)) <= time.time() + 60
            server.start()
    finally:
        held.set()


def test_content_for_a_provider_that_rests_is_ignored_with_a_line_in_the_log(scene: Subscribed) -> None:
    scene.subscribe("a")
    with scene.callbacks() as server:
        scene.hub.verify()
        scene.lcc.lcc("provider", "pause", "7")
        assert scene.hub.send(scene.feed("a", "b")) == 202
        assert "nothing may be fetched from provider 7 now" in server.log.read_text()
    assert scene.waiting() == {"a"}


def test_a_subscription_is_renewed_before_it_ends(scene: Subscribed) -> None:
    scene.subscribe("a")
    with scene.callbacks():
        scene.hub.verify(lease_seconds="864000")
        scene.run()
        assert len(scene.hub.asked) == 1
        scene.run()
        (row,) = scene.lcc.sql("select due - at, lease from sources")
        assert row[0] == 3600
        store = SqlStore(scene.lcc.shared_url)
        with store.begin() as tx:
            from dataclasses import replace

            (one,) = rows_in(tx).sources()
            rows_in(tx).put_source(replace(one, lease=one.at + 100))
        store.close()
        scene.run()
        assert len(scene.hub.asked) == 2
        assert scene.hub.asked[0]["hub.callback"] == scene.hub.asked[1]["hub.callback"]
        assert scene.lcc.sql("select due - at <= 60 from sources") == [(1,)]
        scene.hub.verify(lease_seconds="864000")
        assert scene.lcc.sql("select lease > at + 800000 from sources") == [(1,)]


def test_a_removed_source_ends_its_subscription(scene: Subscribed) -> None:
    scene.subscribe("a")
    with scene.callbacks():
        scene.hub.verify()
        assert "confirmed" in scene.lcc.lcc("source", "remove", "1").stdout
        assert scene.hub.last["hub.mode"] == "unsubscribe"
        assert scene.lcc.lcc("source", "run", "7", "1", check=False).returncode == 1
        assert scene.hub.verify()[0] == 200
        assert scene.lcc.sql("select * from sources") == []
        assert scene.hub.verify()[0] == 404


def test_a_hub_that_denies_a_subscription_is_told_of(scene: Subscribed) -> None:
    scene.subscribe("a")
    with scene.callbacks():
        assert scene.hub.verify(mode="denied", reason="no strangers")[0] == 200
    assert "denies the subscription: no strangers" in scene.lcc.lcc("source", "list").stdout
    assert scene.leases() == [(0, "")]


def test_a_hub_at_a_private_address_is_not_asked(scene: Subscribed) -> None:
    with Hub() as other:
        scene.site.put("/feed", page(scene.feed("a").replace(scene.hub.url, other.url), content_type=ATOM))
        scene.add("websub", "/feed")
        (note,) = scene.run()["notes"]
        assert "its address is private" in note
        assert other.paths == []
    assert scene.waiting() == {"a"}


def test_a_changed_entry_is_cached_soon_after_the_ping(
    make_lcc: Callable[..., Lcc], site: Site, hub: Hub
) -> None:
    scene = Subscribed(make_lcc, site, hub, LCC_POLL="1h")  # so that the ping is what wakes the crawl
    scene.site.put("/d/a", page("first"), page("second"))
    scene.subscribe("a")
    with scene.callbacks():
        scene.hub.verify()
        scene.lcc.start()
        wait_for(lambda: scene.cached() == {"a"}, 30, "the first document")
        scene.lcc.wait_until_fetched(30)
        assert scene.hub.send(scene.feed("a", a="2")) == 202
        wait_for(lambda: len(scene.site.asked("/d/a")) == 2, 30, "the second fetch")
        scene.lcc.wait_until_fetched(30)
    assert scene.lcc.stop() == 0
    assert scene.lcc.sql("select fetched_len from lccurl") == [(len("second"),)]
