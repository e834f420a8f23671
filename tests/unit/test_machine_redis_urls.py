"""URLs that name Sentinels, or a cluster."""

import pytest

from lcc_scrapy.apps.sources import redis_key
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.machine import wake_redis
from lcc_scrapy.machine.redis_urls import ClusterRedis, SentinelRedis, Servers, class_of, errors

SECRET = "canary"


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("redis+sentinel://a/lcc", Servers((("a", 26379),), ("lcc",))),
        (
            "rediss+sentinel://u:p%40s@a:1,[::1]:2,c/my%20name/3",
            Servers((("a", 1), ("::1", 2), ("c", 26379)), ("my name", "3"), "u", "p@s", tls=True),
        ),
        ("REDIS+SENTINEL://:pw@a/lcc/", Servers((("a", 26379),), ("lcc",), None, "pw")),
        ("redis+cluster://a/", Servers((("a", 26379),))),
    ],
)
def test_a_url_names_servers_and_what_is_on_them(url, means):
    assert Servers.parse(url, 26379) == means


def test_the_scheme_says_what_makes_clients():
    assert {class_of(f"{name}+sentinel://a/lcc") for name in ("redis", "rediss", "REDIS")} == {SentinelRedis}
    assert {class_of(f"{name}+cluster://a") for name in ("redis", "rediss")} == {ClusterRedis}
    assert not any(map(class_of, ("", "redis://a/0", "rediss://a", "unix:///a", "sentinel")))


@pytest.mark.parametrize(
    ("kind", "rest"),
    [
        ("sentinel", ""),
        ("sentinel", "/lcc"),
        ("sentinel", "a"),
        ("sentinel", "a/"),
        ("sentinel", ",/lcc"),
        ("sentinel", "a,/lcc"),
        ("sentinel", "a:x/lcc"),
        ("sentinel", "a:99999/lcc"),
        ("sentinel", "a/lcc/x"),
        ("sentinel", "a/lcc/-1"),
        ("sentinel", "a/lcc/1/2"),
        ("sentinel", "[::1/lcc"),
        ("sentinel", "a?b/lcc"),
        ("sentinel", "a/lcc?ssl=1"),
        ("cluster", ""),
        ("cluster", "a/1"),
        ("cluster", "a,"),
    ],
)
def test_what_names_none_is_one_clear_line_without_the_password(kind, rest):
    url = f"redis+{kind}://:{SECRET}@{rest}"
    for client_of in (wake_redis.client_of, lambda url: redis_key.client_of({}, url)):
        with pytest.raises(ConfigurationError) as caught:
            client_of(url)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["redis+sentinel://127.0.0.1:1/n", "redis+cluster://127.0.0.1:1"])
def test_what_a_url_does_not_say_comes_from_the_options(url):
    given = {"username": "u", "password": "p", "host": "elsewhere", "port": 1, "db": 3}
    client = class_of(url).from_url(url, **given)
    with pytest.raises(errors()):
        client.ping()


def test_a_url_goes_before_the_options():
    client = SentinelRedis.from_url("redis+sentinel://:b@127.0.0.1:1/n/2", username="u", password="p", db=3)
    said = client.connection_pool.connection_kwargs
    assert (said["username"], said["password"], said["db"]) == ("u", "b", 2)
    said = SentinelRedis.from_url("redis+sentinel://127.0.0.1:1/n", db=3).connection_pool.connection_kwargs
    assert said["db"] == 3
