"""Looking URDs up by a page finds the same as asking each of them."""

from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.urd_scopes import UrdScopes
from tests.annotated_lcc import urd

SITE = "http://www.example.org/"
URLS = st.lists(st.sampled_from(["a", "b", "/", "a/", "?x=/", "//"]), max_size=4).map(
    lambda p: SITE + "".join(p)
)
OWNERS = st.sampled_from(["anna", "bert", "carl"])
URIS = st.one_of(URLS, st.sampled_from(["*", "http://other.example.org/", "http://"]))


@given(st.lists(st.tuples(URIS, OWNERS), max_size=8), URLS, st.sets(OWNERS))
def test_scopes_agree_with_urds(given_urds, url, owners):
    urds = [urd(owner, uri) for uri, owner in given_urds]
    numbered = dict(enumerate(urds, 1))
    scopes = UrdScopes(replace_id(one, urdid) for urdid, one in numbered.items())
    expected = {urdid for urdid, one in numbered.items() if one.names(url) or one.owner in owners}
    assert scopes.of(url, owners) == expected


def replace_id(one, urdid):
    return type(one)(urdid, one.owner, one.uri)
