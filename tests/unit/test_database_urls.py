"""URLs of databases: whatever is wrong with one, nothing of its password is shown."""

import pytest
from sqlalchemy import URL

from lcc_scrapy.app.opening import unchecked_store
from lcc_scrapy.config.config import load
from lcc_scrapy.config.project import PlainSettings
from lcc_scrapy.db.sql.urls import read_url
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.front.directory import Directory

SCHEMES = ("mysql", "mysql+pymysql", "mariadb", "postgresql", "nonsense", "sqlite")
SECRET = ("Tr0ub", "dor3")


@pytest.mark.parametrize(
    "between", ["@", "@@", "@:", "@/", "@?", "@#", ":@", "/@", "@[", "@ ", "@:1/", "@%40"]
)
def test_an_at_in_a_password_shows_nothing_of_it(between):
    for scheme in SCHEMES:
        with pytest.raises(ConfigurationError) as told:
            read_url(f"{scheme}://lcc:{between.join(SECRET)}@db.example.org/lcc")
        assert "%40" in str(told.value)
        assert not any(part in str(told.value) for part in SECRET)


@pytest.mark.parametrize("port", ["x", "33x", "-1", "0", "65536", "99999999999999999999", "33 06", "3306x"])
def test_a_broken_port_is_told(port):
    for scheme in SCHEMES:
        with pytest.raises(ConfigurationError) as told:
            read_url(f"{scheme}://lcc:{''.join(SECRET)}@db.example.org:{port}/lcc")
        assert "port" in str(told.value)
        assert SECRET[0] not in str(told.value)


@pytest.mark.parametrize("text", ["", "nonsense", "://", "mysql:", "mysql:/x", "Tr0ub@dor3"])
def test_what_is_no_url_is_not_shown(text):
    with pytest.raises(ConfigurationError) as told:
        read_url(text)
    assert not any(part in str(told.value) for part in SECRET)


def test_good_ones_are_read():
    for text, host, password in (
        ("mysql://lcc:p%40ss@db.example.org:3306/lcc", "db.example.org", "p@ss"),
        ("mysql://lcc:p/s?s:x@db/lcc", "db", "p/s?s:x"),
        ("mysql://me@corp:secret@db/lcc", "db", "secret"),
        ("postgresql://lcc@db/l@cc", "db", None),
        ("postgresql://lcc:s@[::1]:5432/lcc", "::1", "s"),
        ("mysql://lcc:s@/lcc?host=a:1&host=b", None, "s"),
    ):
        made = read_url(text)
        assert (made.host, made.password) == (host, password)
    assert read_url("sqlite:////srv/a@b/c@d.sqlite").database == "/srv/a@b/c@d.sqlite"
    assert read_url("sqlite:////srv/a:b@c/d@e.sqlite").database == "/srv/a:b@c/d@e.sqlite"
    given = URL.create("sqlite")
    assert read_url(given) is given


def test_the_setting_is_named(tmp_path):
    bad = f"mysql://lcc:{'@'.join(SECRET)}@db.example.org/lcc"
    settings = {"LCC_DATA_DIR": str(tmp_path), "LCC_DATABASE_URL": bad}
    with pytest.raises(ConfigurationError, match=r"LCC_DATABASE_URL: two @ .* as %40$"):
        unchecked_store(load(PlainSettings({}, {}), settings))
    with pytest.raises(ConfigurationError, match=r"LCC_FRONT_DATABASE_URL: two @ .* as %40$"):
        Directory(bad)
