"""Settings that cannot be read say what was expected, with their name."""

import sys
from dataclasses import dataclass, fields
from ipaddress import ip_network
from pathlib import Path

import pytest
from scrapy.settings import Settings

from lcc_scrapy.app.opening import unchecked_store
from lcc_scrapy.config.config import SETTINGS, Config, load
from lcc_scrapy.domain import notations
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.settings import LIVE, declared_in, group, make, setting, values_of
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.links.rules import DOCUMENTS


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LCC_QUEUE_MAX", "x", "LCC_QUEUE_MAX: 'x', expected a whole number from 0 on"),
        ("LCC_REDIRECTS", "-1", "LCC_REDIRECTS: '-1', expected a whole number from 0 on"),
        ("LCC_FETCHES", "0", "LCC_FETCHES: '0', expected a whole number from 1 on"),
        ("LCC_MAX_REMOVAL", "half", "LCC_MAX_REMOVAL: 'half', expected a share like 50%"),
        ("LCC_MAX_REMOVAL", "150%", "LCC_MAX_REMOVAL: '150%', expected a share like 50%"),
        ("LCC_TIMEOFDAY_SLOTS", "25", "LCC_TIMEOFDAY_SLOTS: '25', expected 24 or 168"),
        (
            "LCC_LOGIN_FAILURES_PER_ID",
            "10",
            "LCC_LOGIN_FAILURES_PER_ID: '10', expected a rate like 30/m, 5/h or 1/10s",
        ),
        (
            "LCC_LOGIN_FAILURES_PER_ID",
            "0/m",
            "LCC_LOGIN_FAILURES_PER_ID: '0/m', expected a rate like 30/m, 5/h or 1/10s",
        ),
        ("LCC_ELEMENT_BYTES", "4k", "LCC_ELEMENT_BYTES: '4k', expected 16384 or more"),
        (
            "LCC_URL_LENGTH",
            "4000",
            "LCC_URL_LENGTH: '4000', expected at most 2048, which is what the database takes",
        ),
        ("LCC_CONTENT_COMPRESSION", "br", "LCC_CONTENT_COMPRESSION: 'br', expected none, gzip or zstd"),
        ("LCC_CONTENT_REDIRECT", "8d", "LCC_CONTENT_REDIRECT: '8d', expected 7d at most"),
        ("LCC_KEEP_VERSIONS", "101", "LCC_KEEP_VERSIONS: '101', expected at most 100 versions"),
        ("LCC_KEEP_VERSIONS", "5,5", "LCC_KEEP_VERSIONS: '5,5', expected for example 5, 30d or '5, 30d'"),
        ("LCC_KEEP_VERSIONS", "30d,5", "LCC_KEEP_VERSIONS: '30d,5', expected for example 5, 30d or '5, 30d'"),
        ("LCC_KEEP_VERSIONS", "5,5x", "LCC_KEEP_VERSIONS: '5x', expected for example 90d, 12h, 10m or 30s"),
        (
            "LCC_REVISIT",
            "1d..1h",
            "LCC_REVISIT: '1d..1h', expected rising intervals like 1h..30d or 1h..1d..30d, up to 3650d",
        ),
        ("LCC_POLL", "soon", "LCC_POLL: 'soon', expected for example 90d, 12h, 10m or 30s"),
        (
            "LCC_UNS_ALLOW_PLAIN_REMOTE",
            "perhaps",
            "LCC_UNS_ALLOW_PLAIN_REMOTE: 'perhaps', expected yes or no",
        ),
    ],
)
def test_a_setting_that_cannot_be_read_says_what_was_expected(
    name: str, value: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(Settings(), {"LCC_DATA_DIR": str(tmp_path), name: value})
    assert str(refused.value) == said


def test_settings_are_read_in_their_units(tmp_path: Path) -> None:
    given = {
        "LCC_DATA_DIR": str(tmp_path),
        "LCC_BANDWIDTH": "200k",
        "LCC_LEASE": "2m",
        "LCC_MAX_REMOVAL": "25%",
        "LCC_LOGIN_FAILURES_PER_ADDRESS": "5/h",
        "LCC_LOGIN_FAILURES_PER_ID": "1 / 10s",
    }
    config = load(Settings(), given)
    assert (config.turns.bandwidth, config.turns.lease, config.policy.max_removal) == (200_000, 120.0, 0.25)
    assert (config.login.per_address, config.login.per_id) == (Rate(5, 3600), Rate(1, 10))


def test_proxies_are_addresses_and_networks(tmp_path: Path) -> None:
    given = {"LCC_DATA_DIR": str(tmp_path), "LCC_UNS_PROXIES": "192.0.2.1 2001:db8::/32"}
    assert load(Settings(), given).uns_listen.proxies == (
        ip_network("192.0.2.1/32"),
        ip_network("2001:db8::/32"),
    )
    with pytest.raises(ConfigurationError, match=r"LCC_UNS_PROXIES: .*loadbalancer"):
        load(Settings(), {**given, "LCC_UNS_PROXIES": "loadbalancer"})


def test_the_url_of_the_database_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "database-url"
    file.write_text("mysql://lcc:secret@db.example.org/lcc\n", encoding="utf-8")
    given = {"LCC_DATA_DIR": str(tmp_path), "LCC_DATABASE_URL_FILE": str(file)}
    assert load(Settings(), given).database_url == "mysql://lcc:secret@db.example.org/lcc"
    nearer = {**given, "LCC_DATABASE_URL": "sqlite:////srv/lcc.sqlite"}
    assert load(Settings(), nearer).database_url == "sqlite:////srv/lcc.sqlite"


def test_an_empty_file_for_the_url_is_no_url_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "database-url"
    given = {"LCC_DATA_DIR": str(tmp_path), "LCC_DATABASE_URL_FILE": str(file)}
    with pytest.raises(ConfigurationError, match=r"LCC_DATABASE_URL_FILE: .*database-url"):
        load(Settings(), given)
    file.touch()
    assert load(Settings(), given).database_url == f"sqlite:///{tmp_path}/lcc.sqlite"


@pytest.mark.parametrize(
    ("value", "keep"),
    [
        ("0", Keep()),
        ("", Keep()),
        ("5", Keep(5)),
        (" 30D ", Keep(0, 30 * 86400)),
        ("5,30d", Keep(5, 30 * 86400)),
        ("100 , 1.5h", Keep(100, 5400)),
    ],
)
def test_versions_are_kept_by_number_by_age_or_both(value, keep):
    assert load(Settings(), {"LCC_DATA_DIR": "/", "LCC_KEEP_VERSIONS": value}).policy.versions == keep


@pytest.mark.parametrize(
    ("value", "seconds"), [("", 0), (" ", 0), ("0", 0), ("1m", 60), ("0.3s", 1), ("7d", 604_800)]
)
def test_signed_urls_are_good_for_whole_seconds_or_there_are_none(value, seconds):
    given = {"LCC_DATA_DIR": "/", "LCC_CONTENT_REDIRECT": value}
    assert load(Settings(), given).content_redirect == seconds


def test_an_ignore_file_is_read_and_a_line_that_is_wrong_is_named(tmp_path: Path) -> None:
    given = {"LCC_DATA_DIR": str(tmp_path), "LCC_LINKS_IGNORE_FILE": str(tmp_path / "ignore")}
    with pytest.raises(ConfigurationError, match=r"LCC_LINKS_IGNORE_FILE: .*No such file"):
        load(Settings(given), {})
    (tmp_path / "ignore").write_text("ads.example.org\ntwo words\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"LCC_LINKS_IGNORE_FILE: .*ignore: line 2: 'two words'"):
        load(Settings(given), {})
    (tmp_path / "ignore").write_text("ads.example.org\n", encoding="utf-8")
    rules = load(Settings(given), {}).links("lcc-scrapy")
    assert rules.ignore.covers("http://ads.example.org/")
    assert rules.ignore.covers("http://www.example.org/a.ZIP")
    assert not rules.ignore.covers("http://www.example.org/a.html")


def test_kinds_of_links_are_groups_or_single_ones(tmp_path: Path) -> None:
    given = {"LCC_DATA_DIR": str(tmp_path), "LCC_LINKS_FOLLOWED": "documents, img"}
    assert load(Settings(given), {}).links("x").relations == DOCUMENTS | {"img"}
    with pytest.raises(ConfigurationError, match="LCC_LINKS_FOLLOWED: 'foo', expected some of a, "):
        load(Settings(given | {"LCC_LINKS_FOLLOWED": "a foo"}), {})


def test_a_driver_that_is_missing_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"psycopg is missing: install lcc-scrapy\[postgresql\]"):
        unchecked_store(load(Settings({"LCC_DATABASE_URL": "postgresql+psycopg://x@127.0.0.1:1/x"})))


# --- declarations --------------------------------------------------------------------------------


def test_every_field_of_the_configuration_is_a_setting_or_a_group_of_them(tmp_path: Path) -> None:
    config = load(Settings({"LCC_DATA_DIR": str(tmp_path)}), {})
    assert values_of(config).keys() == {one.name for one in SETTINGS}
    assert make(Config, values_of(config)) == config
    assert [one.name for one in fields(Config) if not one.metadata] == ["of_apps"]


def test_a_setting_that_several_components_get_is_one_setting(tmp_path: Path) -> None:
    config = load(Settings({"LCC_DATA_DIR": str(tmp_path), "LCC_POLL": "7s"}), {})
    assert config.poll == config.web.poll == 7
    assert [one.name for one in SETTINGS].count("LCC_POLL") == 1
    declared = {}
    for one in declared_in(Config):
        assert declared.setdefault(one.name, one) == one, "two declarations of one name"


@pytest.mark.parametrize("text", ["\u00b2", "-1", "", "1.5"])
def test_whole_numbers_are_written_with_plain_digits(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 0 on"):
        notations.whole(text)


def test_the_bounds_of_notations_are_good_themselves() -> None:
    assert [notations.priority(text) for text in "012"] == [0, 1, 2]
    assert notations.revisits("1h..3650d").longest == 3650 * 86400
    with pytest.raises(ValueError, match="up to 3650d"):
        notations.revisits("1h..3651d")


@dataclass(frozen=True)
class Inner:
    one: int = setting("LCC_ONE", "1", int, "One.")


@dataclass(frozen=True)
class Outer:
    inner: Inner = group(Inner)  # noqa: RUF009 - as in Config
    plain: int = 5
    two: int = setting("LCC_TWO", "2", int, "Two.", LIVE)


def test_settings_are_those_of_fields_and_of_groups_in_order() -> None:
    assert [(one.name, one.live) for one in declared_in(Outer)] == [("LCC_ONE", False), ("LCC_TWO", True)]
