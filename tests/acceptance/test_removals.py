"""Nothing is mass-deleted, whatever a provider or its site does wrong, and everybody is told, word for word.

Real UNS, crawl and commands; what providers would never send with lcccp goes over a plain socket.
"""

import re
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from xml.sax.saxutils import quoteattr

import pytest

from tests.harness import PASSWORD, Lcc, wait_for
from tests.integration.site import NOT_FOUND, Site, page

pytestmark = [pytest.mark.acceptance]

INIT = (
    '<lococa:init xmlns:lococa="http://www.lococa.org/1.0">'
    f'<provider id="7" passwd="{PASSWORD}"/></lococa:init>'
)
ALL_IS_WELL = "held 0 removals wait for `lcc provider confirm-removals`"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def host(site: Site) -> str:
    return f"http://127.0.0.1:{site.listen()}/"


@pytest.fixture
def lcc(make_lcc: Callable[..., Lcc], host: str) -> Lcc:
    made = make_lcc(LCC_STOP_TIMEOUT="2s", LCC_RETRY_DELAYS="")
    made.add_provider(7, host)
    made.start()
    return made


def names(count: int, start: int = 0) -> list[str]:
    return [f"{number:04}.html" for number in range(start, start + count)]


def url(name: str, **attributes: str) -> dict[str, str]:
    return {"c": name, "mimetype": "text/html", **attributes}


def removal(name: str) -> dict[str, str]:
    return url(name, op="remove")


class Provider:
    """Provider 7: its site, and what it says to the UNS over a plain socket."""

    def __init__(self, lcc: Lcc, site: Site, host: str) -> None:
        self.lcc, self.site, self.host = lcc, site, host

    def fill(self, *pages: str) -> None:
        """Put pages on the site and have them fetched."""
        for name in pages:
            self.site.put(f"/{name}", page(f"this is {name}"))
        assert self.push(map(url, pages)) == f'<set_accepted received="{len(pages)}"/>'
        self.lcc.wait_until_fetched()
        assert self.documents() == len(pages)

    def push(self, urls: Iterable[dict[str, str]], *, full: bool = False, **attributes: str) -> str:
        """Log in, send a set, and return what is said of it."""
        answer = self.talk(urls, {"set": "full" if full else "partial", **attributes})
        verdict = re.search(r"<set_(?:accepted|rejected).*", answer)
        return verdict[0] if verdict else answer

    def talk(self, urls: Iterable[dict[str, str]], attributes: dict[str, str]) -> str:
        lines = [
            INIT,
            tag("lococa:set", {"urlprefix": self.host, **attributes}, ">"),
            *(tag("url", one, "/>") for one in urls),
            "</lococa:set>",
        ]
        with socket.create_connection(("127.0.0.1", self.lcc.port), 300) as connection:
            connection.sendall("\n".join(lines).encode())
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def documents(self) -> int:
        return int(str(self.lcc.sql("select count(*) from lccurl")[0][0]))

    def settled(self) -> None:
        self.lcc.wait_until_fetched()


def tag(name: str, attributes: dict[str, str], end: str) -> str:
    return f"<{name} {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())}{end}"


@pytest.fixture
def provider(lcc: Lcc, site: Site, host: str) -> Provider:
    return Provider(lcc, site, host)


def warnings(lcc: Lcc) -> list[str]:
    return re.findall(r"\[lcc_scrapy\.[\w.]+\] WARNING: (.*)", lcc.log_text())


def held_in(lcc: Lcc) -> list[str]:
    """Return what ``lcc status`` and ``lcc provider show`` say about held removals."""
    status = lcc.lcc("status").stdout.splitlines()
    shown = [line for line in lcc.lcc("provider", "show", "7").stdout.splitlines() if "held" in line]
    held = status[status.index(next(line for line in status if line.startswith("held"))) :]
    return [" ".join(line.split()) for line in (*held, *shown)]


def told(count: int) -> list[str]:
    return [
        f"held {count} removals wait for `lcc provider confirm-removals`",
        f"provider 7: {count}",
        f"held removals {count}, see `lcc provider confirm-removals 7`",
    ]


NOTHING_HELD = [ALL_IS_WELL, "held removals none"]


def notice(count: int, why: str) -> str:
    return (
        f"provider 7: {count} removals are held ({why}): `lcc provider confirm-removals 7` carries them out,"
        " a later full set decides anew"
    )


# --- full sets -------------------------------------------------------------------------------------


def test_a_truncated_full_set(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(60))
    assert provider.push(map(url, names(20)), full=True) == '<set_accepted received="20"/>'
    provider.settled()
    assert provider.documents() == 60
    assert warnings(lcc) == [notice(40, "not in the full set of login 2, which names 20 URLs")]
    assert held_in(lcc) == told(40)

    assert provider.push(map(url, names(60)), full=True) == '<set_accepted received="60"/>'
    provider.settled()
    assert (provider.documents(), held_in(lcc)) == (60, NOTHING_HELD)


def test_a_full_set_that_was_cut_off_on_the_way(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(30))
    with socket.create_connection(("127.0.0.1", lcc.port), 300) as connection:
        opening = tag("lococa:set", {"set": "full", "urlprefix": provider.host}, ">")
        connection.sendall(f'{INIT}{opening}<url c="0000.html" mimety'.encode())
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert (
        '<set_rejected code="201">Set not well-formed or cut short: the stream ends too early</set_rejected>'
        in answer
    )
    provider.settled()
    assert (provider.documents(), warnings(lcc), held_in(lcc)) == (30, [], NOTHING_HELD)


def test_a_full_set_of_one_url_of_a_thousand(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(1000))
    assert provider.push([url(names(1)[0])], full=True) == '<set_accepted received="1"/>'
    provider.settled()
    assert provider.documents() == 1000
    assert warnings(lcc) == [notice(999, "not in the full set of login 2, which names 1 URLs")]
    assert held_in(lcc) == told(999)
    assert lcc.lcc("provider", "confirm-removals", "7").stdout == "999 documents removed\n"
    assert (provider.documents(), held_in(lcc)) == (1, NOTHING_HELD)
    assert lcc.lcc("verify").returncode == 0


def test_an_empty_full_set(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(3))
    assert provider.push([], full=True) == '<set_accepted received="0"/>'
    provider.settled()
    assert provider.documents() == 3
    assert warnings(lcc) == [notice(3, "not in the full set of login 2, which names 0 URLs")]
    assert held_in(lcc) == told(3)

    done = lcc.lcccp(7, "--full", f"--urlprefix={provider.host}", stdin='<end count="0"/>\n')
    assert (done.returncode, done.stderr) == (
        65,
        "lcccp: a full set without URLs would remove everything; nothing sent\n",
    )


def test_a_full_set_with_a_refused_url_whose_key_can_be_read(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(30))
    urls = [*map(url, names(29)), url(names(1, 29)[0], md5="no md5")]
    answer = provider.talk(urls, {"set": "full"})
    assert '<set_accepted received="29"/>' in answer
    assert re.search(r'<url code="706" .*>Attribute not valid: md5 .no md5., expected 32 hex digits<', answer)
    provider.settled()
    assert (provider.documents(), warnings(lcc), held_in(lcc)) == (30, [], NOTHING_HELD)


def test_a_full_set_with_a_refused_url_whose_key_cannot_be_read(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(30))
    answer = provider.talk([*map(url, names(29)), {"c": names(1, 29)[0]}], {"set": "full"})
    assert '<set_accepted received="29"/>' in answer
    assert re.search(r'<url code="702" .*>mimetype missing<', answer)
    provider.settled()
    assert provider.documents() == 30
    assert warnings(lcc) == [notice(1, "not in the full set of login 2, which names 29 URLs")]
    assert held_in(lcc) == told(1)


@pytest.mark.parametrize("set_id", ["monday", ""])
def test_a_full_set_that_is_sent_twice(provider: Provider, lcc: Lcc, set_id: str) -> None:
    provider.fill(*names(30))
    named = {"id": set_id} if set_id else {}
    for _ in range(2):
        assert provider.push(map(url, names(25)), full=True, **named) == '<set_accepted received="25"/>'
        provider.settled()
    assert (provider.documents(), warnings(lcc), held_in(lcc)) == (25, [], NOTHING_HELD)
    assert lcc.check(7)["full_sets_left"] == (9 if set_id else 8)


def test_more_full_sets_than_allowed_while_nothing_can_be_absorbed(
    make_lcc: Callable[..., Lcc], site: Site, host: str
) -> None:
    lcc = make_lcc(LCC_QUEUE_MAX="1", LCC_STOP_TIMEOUT="2s")
    lcc.add_provider(7, host)
    lcc.add_provider(8, host)
    lcc.start()
    provider = Provider(lcc, site, host)
    provider.fill(names(1)[0])
    lcc.lcc("provider", "pause", "8")
    assert lcc.push_urls(8, [{"curl": f"{host}x", "mimetype": "text/html"}]).returncode == 0
    wait_for(lambda: lcc.status()["queued"] == 1 and not lcc.is_spooled(), 20, "the queue to be full")

    accepted, spent = (
        '<set_accepted received="1"/>',
        '<set_rejected code="202">No full sets left</set_rejected>',
    )
    one = [url(names(1)[0])]
    assert [provider.push(one, full=True) for _ in range(6)] == [accepted] * 6
    assert lcc.stop(signal.SIGKILL) == -signal.SIGKILL
    lcc.start()
    assert [provider.push(one, full=True) for _ in range(6)] == [accepted] * 4 + [spent] * 2
    assert lcc.check(7)["full_sets_left"] == 0
    assert lcc.status()["spool"]["sets"] == 10  # type: ignore[index]
    assert delivered(lcc, names(1), host, "--full") == (3, "lcccp: set refused: 202 No full sets left\n")

    lcc.lcc("provider", "resume", "8")
    lcc.wait_until_fetched()
    assert lcc.check(7)["full_sets_left"] == 0
    lcc.lcc("provider", "want-full", "7", "--reason", "cache crash")
    told_at_login = lcc.lcccp(7, "--check").stdout.splitlines()
    assert "full sets: 0 left" in told_at_login
    assert "the LCC wants a full set: cache crash" in told_at_login
    assert provider.push(one, full=True) == accepted


# --- partial sets ------------------------------------------------------------------------------------


def test_a_partial_set_that_removes_too_much(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(60))
    urls = [*map(removal, names(40)), *map(removal, names(500, 1000)), url("new.html")]
    provider.site.put("/new.html", page("new"))
    assert (
        provider.push(urls, dryrun="yes") == '<set_accepted received="541" would_remove="0" would_hold="40"/>'
    )
    assert provider.push(urls) == '<set_accepted received="541"/>'
    provider.settled()
    assert provider.documents() == 61
    assert warnings(lcc) == [notice(40, "removed by the set of login 3, which names 541 URLs")]
    assert held_in(lcc) == told(40)

    assert provider.push(map(url, names(10))) == '<set_accepted received="10"/>'
    provider.settled()
    assert held_in(lcc) == told(30)
    assert lcc.lcc("provider", "confirm-removals", "7").stdout == "30 documents removed\n"
    assert (provider.documents(), held_in(lcc)) == (31, NOTHING_HELD)


def test_removals_of_unknown_urls_hold_nothing(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(60))
    urls = [*map(removal, names(30)), *map(removal, names(500, 1000))]
    assert provider.push(urls, dryrun="yes") == '<set_accepted received="530" would_remove="30"/>'
    assert provider.push(urls) == '<set_accepted received="530"/>'
    provider.settled()
    assert (provider.documents(), warnings(lcc), held_in(lcc)) == (30, [], NOTHING_HELD)


# --- the site ------------------------------------------------------------------------------------------


def test_a_site_that_answers_404_to_everything(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(60))
    for name in names(60):
        provider.site.put(f"/{name}", NOT_FOUND)
    assert provider.push(map(url, names(60))) == '<set_accepted received="60"/>'
    provider.settled()
    assert provider.documents() == 30
    wait_for(lambda: warnings(lcc), what="the notice")
    counts = [int(text.split()[2]) for text in warnings(lcc)]
    assert warnings(lcc) == [notice(count, "their fetches failed for good") for count in counts]
    assert 10 <= counts[-1] <= 30
    assert held_in(lcc) == told(30)
    assert lcc.lcccp(7, "--check").stdout.splitlines()[-22:-20] == [
        "errors since the last login: 60",
        f"  404 Not Found  {provider.host}0000.html",
    ]

    for name in names(60):
        provider.site.put(f"/{name}", page("back again"))
    provider.push(map(url, names(60)), full=True)
    provider.settled()
    assert (provider.documents(), held_in(lcc)) == (60, NOTHING_HELD)


# --- the operator --------------------------------------------------------------------------------------


def test_narrowed_roots_while_the_crawl_runs(provider: Provider, lcc: Lcc) -> None:
    old, new = [f"old/{name}" for name in names(40)], [f"new/{name}" for name in names(5)]
    provider.fill(*old, *new)
    lcc.lcc("provider", "pause", "7")
    assert provider.push([url(old[0]), url(old[1]), url(new[0])]) == '<set_accepted received="3"/>'
    wait_for(lambda: not lcc.is_spooled(), 20, "the set to be absorbed")
    done = lcc.lcc("provider", "set", "7", "--root", f"{provider.host}new/")
    assert done.stdout.splitlines() == [
        "provider 7 changed",
        (
            "40 documents outside its roots are held, they are too many for a day:"
            " `lcc provider confirm-removals 7` removes them"
        ),
        "2 waiting URLs outside its roots dropped; their provider is told (704)",
    ]
    assert held_in(lcc) == told(40)
    assert lcc.lcc("provider", "confirm-removals", "7").stdout == "40 documents removed\n"
    lcc.lcc("provider", "resume", "7")
    lcc.wait_until_fetched()
    assert (provider.documents(), held_in(lcc)) == (5, NOTHING_HELD)
    assert lcc.lcccp(7, "--check").stdout.splitlines()[-3:] == [
        "errors since the last login: 2",
        *(
            f"  704 URL outside the provider's roots: not below {provider.host}new/  {provider.host}{name}"
            for name in old[:2]
        ),
    ]
    assert lcc.lcc("verify").returncode == 0


# --- quotas --------------------------------------------------------------------------------------------


def checked(lcc: Lcc) -> list[str]:
    done = lcc.lcccp(7, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in done.stdout.splitlines() if re.match("files|space|full sets", line)]


def delivered(lcc: Lcc, pages: Sequence[str], host: str, *options: str) -> tuple[int, str]:
    lines = [f'<url curl="{name}" mimetype="text/html"/>' for name in pages]
    lines.append(f'<end count="{len(pages)}"/>')
    done = lcc.lcccp(7, f"--urlprefix={host}", *options, stdin="\n".join(lines) + "\n")
    return done.returncode, done.stderr


def test_the_quota_is_told_before_anything_is_sent_and_holds_after(provider: Provider, lcc: Lcc) -> None:
    provider.fill(*names(4))
    assert checked(lcc) == [
        "files: 4 used, unlimited free",
        "space: 0.0 MB used, unlimited free",
        "full sets: 10 left",
    ]
    lcc.lcc("provider", "set", "7", "--filesmax", "5", "--spacemax", "1M")
    assert checked(lcc)[:2] == ["files: 4 used, 1 free", "space: 0.0 MB used, 1.0 MB free"]
    for name in names(2, 4):
        provider.site.put(f"/{name}", page(f"this is {name}"))
    two = names(2, 4)
    excess = "over quota: 2 files for 1 places"
    assert delivered(lcc, two, provider.host, "--over-quota=fail") == (3, f"lcccp: {excess}; nothing sent\n")
    assert delivered(lcc, two, provider.host, "--dry-run")[0] == 0
    assert delivered(lcc, two, provider.host) == (0, f"lcccp: {excess}\nlcccp: accepted: 2 URLs\n")
    provider.settled()
    assert provider.documents() == 5
    assert lcc.lcccp(7, "--check").stdout.splitlines()[-2:] == [
        "errors since the last login: 1",
        f"  609 Files quota used up  {provider.host}0005.html",
    ]
    assert checked(lcc)[0] == "files: 5 used, 0 free"

    lcc.lcc("provider", "set", "7", "--spacemax", "50")
    provider.site.put("/0000.html", page("this is shorter"))
    provider.site.put("/0001.html", page("this is longer than it was"))
    assert delivered(lcc, names(2), provider.host)[0] == 0
    provider.settled()
    assert lcc.lcccp(7, "--check").stdout.splitlines()[-2:] == [
        "errors since the last login: 1",
        f"  610 Space quota used up  {provider.host}0001.html",
    ]
    assert lcc.sql("select spaceused from pidb") == lcc.sql("select sum(fetched_len + head_len) from lccurl")
    assert lcc.lcc("verify").returncode == 0
