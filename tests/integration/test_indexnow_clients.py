"""Real clients of IndexNow against ``lcc web``: one from PyPI, curl, and a plugin's request byte for byte."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.harness import missing, wait_for
from tests.indexnow_house import Receiver
from tests.integration.site import Site, page

KEY = "3f2a9c0d8e7b4615a0c1d2e3f4a5b6c7"


@pytest.fixture
def site():
    with Site() as made:
        made.port = made.listen()
        made.host = f"127.0.0.1:{made.port}"
        made.url = f"http://{made.host}/"
        made.put(f"/{KEY}.txt", page(KEY))
        made.put(f"/blog/{KEY}.txt", page(KEY))
        yield made


@pytest.fixture
def receiver(site, make_lcc):
    with Receiver(make_lcc(), site.url) as made:
        yield made


def run(*command, **environment):
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
    )
    return done.returncode, done.stdout + done.stderr


def test_a_client_from_pypi_submits_with_nothing_but_another_host_name(site, receiver):
    if importlib.util.find_spec("indexnow") is None:
        missing("studiolabs-indexnow", "pip install studiolabs-indexnow")
    program = f"import indexnow; indexnow.ENDPOINT = '{receiver.url}/indexnow'; indexnow.main()"
    # its check of hosts knows no ports, so it is handed everything by its own function of the protocol
    direct = (
        f"import indexnow; indexnow.ENDPOINT = '{receiver.url}/indexnow';"
        f"print(indexnow.submit('{site.host}', '{KEY}', '{site.url}{KEY}.txt', ['{site.url}a', '{site.url}b']))"
    )
    status, told = run(sys.executable, "-c", direct)
    assert (status, told) == (0, "(200, '')\n")
    wait_for(lambda: receiver.queued() == {f"{site.url}a", f"{site.url}b"})
    names = {
        "INDEXNOW_HOST": "127.0.0.1",
        "INDEXNOW_KEY": KEY,
        "INDEXNOW_KEY_LOCATION": f"{site.url}{KEY}.txt",
    }
    status, told = run(sys.executable, "-c", program, "http://127.0.0.1/x", **names)
    assert status == 1
    assert "HTTP 422. Unprocessable" in told


def test_curl_submits_as_the_page_shows_it(site, receiver):
    status, told = run(
        "curl", "-sS", "-w", "%{http_code}", f"{receiver.url}/indexnow?url={site.url}a&key={KEY}"
    )
    assert (status, told) == (0, "200")
    body = json.dumps({"host": site.host, "key": KEY, "urlList": [f"{site.url}b", f"{site.url}c"]})
    sent = ("-H", "Content-Type: application/json", f"{receiver.url}/indexnow", "-d", body)
    assert run("curl", "-sS", "-w", "%{http_code}", *sent) == (0, "200")
    wait_for(lambda: receiver.queued() == {f"{site.url}{name}" for name in "abc"})


def asked(receiver, site, url="a", key=KEY):
    told = run(
        "curl", "-sS", "-w", " %{http_code}", f"{receiver.url}/indexnow?url={site.url}{url}&key={key}"
    )[1]
    return int(told.rpartition(" ")[2])


def test_each_status_of_the_protocol_is_told_by_the_server(site, make_lcc):
    silent, wrong = "silent-key", "wrong-key"
    site.put(f"/{silent}.txt", page("", "503 Later"))
    with Receiver(make_lcc(), site.url, LCC_INDEXNOW_RATE="2/h") as receiver:
        statuses = {
            "accepted": asked(receiver, site),
            "not checked yet": asked(receiver, site, key=silent),
            "no URL": asked(receiver, site, "", key=""),
            "wrong key": asked(receiver, site, key=wrong),
            "no key at all": asked(receiver, site, key="no_key"),
            "once more": asked(receiver, site, "b"),
            "too often": asked(receiver, site, "c"),
        }
        assert statuses == {
            "accepted": 200,
            "not checked yet": 202,
            "no URL": 400,
            "wrong key": 403,
            "no key at all": 422,
            "once more": 200,
            "too often": 429,
        }
        elsewhere = json.dumps({"host": site.host, "key": "k" * 8, "urlList": ["http://other.example/"]})
        sent = ("-H", "Content-Type: application/json", f"{receiver.url}/indexnow", "-d", elsewhere)
        assert run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *sent) == (0, "422")
        wait_for(lambda: receiver.queued() == {f"{site.url}a", f"{site.url}b"})


def from_wordpress(site, receiver, folder=""):
    """Return what IndexNow's plugin for WordPress sends when a post is published (wp_remote_post over curl).

    Its receiver has a slash behind, its JSON escapes slashes, and the host of a site in a folder is no host.
    """
    there = urlsplit(receiver.url).netloc
    home = f"{site.url}{folder}".rstrip("/")
    said = {
        "host": home.removeprefix("http://"),
        "key": KEY,
        "keyLocation": f"{home}/{KEY}.txt",
        "urlList": [f"{home}/hello-world/"],
    }
    body = json.dumps(said, separators=(",", ":")).replace("/", "\\/").encode()
    return (
        f"POST /indexnow/ HTTP/1.1\r\nHost: {there}\r\nUser-Agent: WordPress/6.8.3; {home}\r\nAccept: */*\r\n"
        f"Accept-Encoding: deflate, gzip, br\r\nReferer: http://{there}/indexnow/\r\n"
        f"Content-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


@pytest.mark.parametrize("folder", ["", "blog/"])
def test_the_plugin_of_wordpress_needs_only_another_host_name(site, receiver, folder):
    there = urlsplit(receiver.url)
    with socket.create_connection((there.hostname, there.port), 300) as link:
        link.sendall(from_wordpress(site, receiver, folder))
        answer = b"".join(iter(lambda: link.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
    wait_for(lambda: receiver.queued() == {f"{site.url}{folder}hello-world/"})
