"""How other machines reach a machine's content files, if nobody says so."""

import pytest

from lcc_scrapy.cli import files
from lcc_scrapy.domain.http_serving import Endpoint


@pytest.mark.parametrize(
    ("endpoint", "secure", "address"),
    [
        ("127.0.0.1:8081", True, ""),
        ("unix:/run/lcc/files.sock", True, ""),
        ("10.0.0.2:0", True, ""),
        ("10.0.0.2:8081", False, "http://10.0.0.2:8081"),
        ("[2001:db8::2]:8081", False, "http://[2001:db8::2]:8081"),
        ("10.0.0.2:8081", True, "https://m2.example.org:8081"),
        ("0.0.0.0:8081", False, "http://m2.example.org:8081"),
        ("[::]:8081", True, "https://m2.example.org:8081"),
    ],
)
def test_a_machine_is_reached_by_the_name_in_its_certificate_or_where_it_listens(
    monkeypatch, endpoint, secure, address
):
    monkeypatch.setattr(files.socket, "getfqdn", lambda: "m2.example.org")
    assert files._address(Endpoint.parse(endpoint), secure=secure) == address
