"""URLs that name Sentinels."""

import pytest

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.machine import wake_redis
from lcc_scrapy.machine.redis_sentinel import SentinelUrl, is_sentinel
from lcc_scrapy.sources import redis_key

SECRET = "canary"


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("redis+sentinel://a/lcc", SentinelUrl((("a", 26379),), "lcc")),
        (
            "rediss+sentinel://u:p%40s@a:1,[::1]:2,c/my%20name/3",
            SentinelUrl((("a", 1), ("::1", 2), ("c", 26379)), "my name", 3, "u", "p@s", tls=True),
        ),
        ("REDIS+SENTINEL://:pw@a/lcc/", SentinelUrl((("a", 26379),), "lcc", 0, None, "pw")),
    ],
)
def test_a_url_names_sentinels_and_the_master(url, means):
    assert is_sentinel(url)
    assert SentinelUrl.parse(url) == means


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "/lcc",
        "a",
        "a/",
        ",/lcc",
        "a,/lcc",
        "a:x/lcc",
        "a:99999/lcc",
        "a/lcc/x",
        "a/lcc/-1",
        "[::1/lcc",
        "a?b/lcc",
    ],
)
def test_what_names_none_is_one_clear_line_without_the_password(rest):
    url = f"redis+sentinel://:{SECRET}@{rest}"
    for client_of in (wake_redis.client_of, lambda url: redis_key.client_of({}, url)):
        with pytest.raises(ConfigurationError) as caught:
            client_of(url)
        assert SECRET not in str(caught.value)


def test_other_urls_are_no_sentinels():
    assert not any(map(is_sentinel, ("", "redis://a/0", "rediss://a", "unix:///a", "sentinel")))
