"""Where HTTP servers listen, and where other machines are: as settings write it."""

import pytest
from scrapy.settings import Settings

from lcc_scrapy.config.config import load
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.http_serving import Endpoint


@pytest.mark.parametrize(
    ("text", "endpoint", "private"),
    [
        ("127.0.0.1:8080", Endpoint("127.0.0.1", 8080), True),
        ("localhost:0", Endpoint("127.0.0.1", 0), True),
        ("[::1]:8443", Endpoint("::1", 8443), True),
        ("[::]:8443", Endpoint("::", 8443), False),
        ("0.0.0.0:80", Endpoint("0.0.0.0", 80), False),
        (" unix:/run/lcc/web.sock ", Endpoint(path="/run/lcc/web.sock"), True),
    ],
)
def test_an_endpoint_is_private_when_only_this_machine_reaches_it(text, endpoint, private):
    assert Endpoint.parse(text) == endpoint
    assert endpoint.is_private == private


@pytest.mark.parametrize(
    "text", ["8080", "example.org:80", "127.0.0.1", "127.0.0.1:99999", "unix:", "1.2.3:80", "::1:80"]
)
def test_what_is_no_endpoint_is_refused(text):
    with pytest.raises(ValueError):
        Endpoint.parse(text)


def test_no_endpoint_is_nowhere():
    assert Endpoint.parse("") is None


def config(tmp_path, **settings):
    return load(Settings({"LCC_DATA_DIR": str(tmp_path), **settings}), {})


def test_other_machines_are_named_by_their_numbers(tmp_path):
    found = config(
        tmp_path, LCC_FILES_MACHINES="2=https://m2.example.org:8081/ 3=http://10.0.0.3"
    ).files_machines
    assert found == {2: "https://m2.example.org:8081", 3: "http://10.0.0.3"}


@pytest.mark.parametrize("text", ["2", "x=http://a", "0=http://a", "2=ftp://a", "2=http://", "2=http://a?b"])
def test_what_names_no_machine_is_refused(tmp_path, text):
    with pytest.raises(ConfigurationError, match="LCC_FILES_MACHINES"):
        config(tmp_path, LCC_FILES_MACHINES=text)
