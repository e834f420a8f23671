"""Which domains of other trackers are to be fetched, and who does, on every store."""

import pytest

from lcc_scrapy.apps.tracker.peers import Peers
from lcc_scrapy.apps.tracker.registry import NotTracked, Registry, ServerRefused
from lcc_scrapy.apps.tracker.rules.scans import CLAIM
from lcc_scrapy.kit.claims import this_process
from tests.mirrors import NOW

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)

PEER = "https://tracker.example.org/"


@pytest.fixture
def registry(store):
    made = Registry(store)
    made.add_domain("de", NOW, PEER)
    made.add_domain("org", NOW)
    return made


def peers(registry, owner="me/1"):
    return Peers(registry.store, owner, 60.0, 3600.0)


def test_one_process_fetches_a_domain_at_a_time(registry):
    ours, theirs = peers(registry), peers(registry, "they/2")
    assert ours.due(NOW) == ["de"]
    assert ours.claim_due("de", NOW).owner == ""
    assert theirs.due(NOW) == []
    assert theirs.claim_due("de", NOW) is None
    with pytest.raises(ServerRefused, match="domain de is fetched by process me/1 now"):
        theirs.claim("de", "", NOW)
    assert ours.keep("de", NOW + CLAIM - 1)
    assert theirs.claim_due("de", NOW + CLAIM) is None
    assert theirs.claim_due("de", NOW + 2 * CLAIM).owner == "me/1"
    assert not ours.keep("de", NOW + 2 * CLAIM)
    ours.succeeded("de", NOW + 2 * CLAIM)
    assert registry.domains()[0].owner == "they/2", "it is theirs by now"


def test_a_domain_whose_process_has_ended_is_taken_over_at_once(registry):
    host = this_process().partition("/")[0]
    peers(registry, f"{host}/4194305").claim_due("de", NOW)
    assert peers(registry).claim("de", "", NOW).domain == "de"


def test_a_domain_is_due_again_after_a_while(registry):
    ours = peers(registry)
    ours.claim_due("de", NOW)
    ours.seen("de", '"v"')
    ours.succeeded("de", NOW)
    assert ours.due(NOW + 3599) == []
    assert ours.due(NOW + 3600) == ["de"]
    assert registry.domains()[0].validator == '"v"'
    before = ours.claim("de", PEER, NOW)
    ours.released(before)
    assert ours.due(NOW) == ["de"]
    before = ours.claim("de", "", NOW)
    ours.failed(before, "no\nanswer", NOW)
    assert registry.domains()[0].error == "no answer"
    assert (ours.due(NOW + 59), ours.due(NOW + 60)) == ([], ["de"])


def test_only_the_peer_of_a_domain_is_asked(registry):
    ours = peers(registry)
    for domain, peer, why in (
        ("de", "https://other.example.org/", "https://other.example.org/ may not speak for domain de"),
        ("org", "", "domain org is this tracker's own: it has no peer"),
    ):
        with pytest.raises(ServerRefused, match=why):
            ours.claim(domain, peer, NOW)
    with pytest.raises(NotTracked):
        ours.claim("fr", "", NOW)
    assert {one.owner for one in registry.domains()} == {""}
