"""``lcc indexnow`` as operators run it."""

import pytest
from test_cli import House, one_error

from lcc_scrapy.apps.indexnow.rules import BAD, GOOD, Asked, SiteKey, portions, read_submission
from lcc_scrapy.apps.indexnow.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore

KEY = "0123456789abcdef"


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    store = SqlStore(f"sqlite:///{made.data / 'lcc.sqlite'}")
    asked = read_submission(Asked(KEY, [f"https://a.example.org/{name}" for name in "xyz"]))
    with store.begin() as tx:
        rows_in(tx).put_site_key(
            SiteKey(asked.digest, asked.site, KEY, asked.location, GOOD, 1, 1_800_000_000, 2, accepted=9)
        )
        rows_in(tx).put_site_key(
            SiteKey(
                "0" * 64,
                "b.example.org",
                KEY,
                "http://b/k.txt",
                BAD,
                reason="the site answers 404",
                refused=4,
            )
        )
        rows_in(tx).add_portions(list(portions(asked, 5)))
    store.close()
    return made


def test_keys_are_listed_by_their_digests(house):
    good, bad = house.json("indexnow", "list")
    assert (good["host"], good["state"], good["seen"], good["accepted"], good["waiting"]) == ("a.example.org", "good", 1_800_000_000, 9, 3)  # fmt: skip
    assert (bad["host"], bad["state"], bad["reason"], bad["refused"]) == (
        "b.example.org",
        "bad",
        "the site answers 404",
        4,
    )
    told = house.lcc("indexnow", "list").stdout
    assert "a.example.org" in told
    assert good["key"][:12] in told
    assert KEY not in told
    assert KEY not in str([good, bad])


def test_a_host_is_forgotten_with_what_waits_for_it(house):
    assert house.lcc("indexnow", "forget", "a.example.org").stdout == "1 keys of a.example.org forgotten\n"
    (left,) = house.json("indexnow", "list")
    assert left["host"] == "b.example.org"
    assert "no key of a.example.org" in one_error(house.lcc("indexnow", "forget", "a.example.org", status=1))
    store = SqlStore(f"sqlite:///{house.data / 'lcc.sqlite'}")
    with store.read() as tx:
        assert rows_in(tx).portions_waiting() == 0
    store.close()


def test_an_lcc_without_keys_says_so(tmp_path):
    house = House(tmp_path)
    house.lcc("init")
    assert "no keys yet" in house.lcc("indexnow", "list").stderr
    assert house.json("indexnow", "list") == []
