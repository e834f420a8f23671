"""Where links lead, and the paths of directories."""

import pytest

from lcc_scrapy.apps.tracker.lookup import led_to, paths_of
from lcc_scrapy.apps.tracker.rules.tracked import Host, TrackedDirectory
from lcc_scrapy.domain.roots import URL_MAX


@pytest.mark.parametrize(
    ("target", "led"),
    [
        (b"x/y", (b"a", b"x", b"y", b"r")),
        (b"../x", (b"x", b"r")),
        (b"..//.", (b"r",)),
        (b"../..", None),
        (b"/x", None),
    ],
    ids=range(5),
)
def test_where_a_link_leads(target, led):
    assert led_to((b"a",), target, (b"r",)) == led


def row_at(dirid):
    return TrackedDirectory(dirid, 1, dirid + 1, dirid - 1, 1, b"n", None, None, None)


class _Deep:
    """Rows of a server on which every directory is in another."""

    def __init__(self):
        self.asked = 0

    def directories(self, dirids):
        self.asked += 1
        assert self.asked <= URL_MAX
        return {one: row_at(one) for one in dirids}


def test_the_path_of_a_directory_is_read_no_further_than_a_url_is_long():
    host = Host(1, "org", "ftp://b.org/", "ftp://b.org", 0)
    paths = paths_of(_Deep(), [(row_at(1), host)])
    assert len(b"/".join(paths[1])) >= URL_MAX
