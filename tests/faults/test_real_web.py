"""What real sites send ends as declared, or is told: every kind by real pushes, in one crawl (``docs/real-web.md``).

``LCC_REAL_WEB=whole`` takes all statuses, octets and defects; otherwise some of each large group.
"""

import os
from collections.abc import Iterator

import pytest

from tests.faults.real_web_case import Case
from tests.faults.real_web_cases import cases
from tests.faults.real_web_crawl import RIGHT, SETTINGS, Crawl, Seen, Stage
from tests.faults.real_web_site import RealWebSite
from tests.harness import lccs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

WHOLE = os.environ.get("LCC_REAL_WEB") == "whole"
LARGE = 60
"""Cases of a group from which on some are left to ``make soak``."""
OUR_OWN = {"600", "601", "602", "603", "611", "612", "614", "615", "704", "999"}
"""Statuses of sites that are wire codes too, and the ends of the range."""


def chosen() -> list[Case]:
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases():
        groups.setdefault((case.kind, case.group), []).append(case)
    return [case for members in groups.values() for case in (members if WHOLE else some(members))]


def some(members: list[Case]) -> list[Case]:
    if len(members) <= LARGE:
        return members
    step = len(members) // 24 | 1
    return [case for number, case in enumerate(members) if number % step == 0 or case.name in OUR_OWN]


CASES = chosen()
GROUPS = dict.fromkeys((case.kind, case.group) for case in CASES if case.group)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Case, Seen]]:
    folder = tmp_path_factory.mktemp("real-web")
    with RealWebSite() as site, lccs(folder) as make:
        stage = Stage(site, CASES, folder)
        lcc = make(**SETTINGS, SSL_CERT_FILE=str(stage.trusted))
        found = Crawl(lcc, stage).run()
        assert lcc.stop() == 0
        assert "Traceback" not in lcc.log_text()
        yield found


@pytest.mark.parametrize(("kind", "group"), GROUPS)
def test_it_ends_as_declared_or_is_told(seen: dict[Case, Seen], kind: str, group: str) -> None:
    members = [case for case in CASES if (case.kind, case.group) == (kind, group)]
    verdicts = {case.name: seen[case].verdict(case) for case in members}
    assert {name: verdict for name, verdict in verdicts.items() if verdict != RIGHT} == {}
