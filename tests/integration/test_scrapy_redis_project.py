"""The project of docs/scrapy-redis.md, converted as that page says, with a producer of scrapy-redis."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, wait_for
from tests.integration.project import make_project
from tests.integration.site import Site, page
from tests.redis_server import URL

PAGE = Path(__file__).parents[2] / "docs" / "scrapy-redis.md"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_a_converted_project_takes_what_its_producer_pushes(
    make_lcc: Callable[..., Lcc], tmp_path: Path, site: Site, redis_server: tuple[Redis, str]
) -> None:
    client, key = redis_server
    before, _, _, after, spider, pipelines = blocks()
    settings = before.replace("redis://127.0.0.1:6379/0", URL) + after
    files = {"settings.py": settings, "spiders/shop.py": spider, "pipelines.py": pipelines}
    lcc = make_lcc(project=make_project(tmp_path / "shop", files), LCC_RETRY_DELAYS="1s")
    root = f"http://127.0.0.1:{site.listen()}/"
    lcc.register(Provider(7, "", allowprivate=True), roots=[[root]])
    site.put("/one", page("<title>one</title>"))
    site.put("/two?page=2", page("<title>two!</title>"))
    lcc.lcc("source", "add", "7", "--redis-key", key, "--every", "1s")
    client.lpush(key, f"{root}one", json.dumps({"url": f"{root}two", "page": "2", "meta": {"job": 5}}))
    items = tmp_path / "items.jsonl"
    lcc.start("-o", str(items), spider="shop")
    wait_for(lambda: len(lcc.sql("select furl from lccurl")) == 2, 60, "both documents")
    assert lcc.stop() == 0
    told = sorted(items.read_text().splitlines())
    assert [json.loads(line) for line in told] == [
        {"url": f"{root}one", "title": "one", "length": 3},
        {"url": f"{root}two?page=2", "title": "two!", "length": 4},
    ]
