"""What is left to ``make soak``: of two servers one, and never what is asked of one server alone."""

from tests.conftest import SLOW_STORES, left_to


def test_a_test_is_left_out_on_one_server_and_each_server_has_its_share():
    cases = [f"tests/contract/test_it.py::test_{number}[{{}}-x]" for number in range(100)]
    left = [[server for server in sorted(SLOW_STORES) if left_to(case.format(server))] for case in cases]
    assert {len(one) for one in left} == {1}
    assert all(20 < sum(server in one for one in left) < 80 for server in SLOW_STORES)
    assert {left_to(case.format("mariadb")) or case.format("mariadb") for case in cases} != set(cases)


def test_what_is_left_out_runs_on_the_other_server():
    for number in range(20):
        case = f"tests/contract/test_it.py::test_{number}[{{}}-x]"
        names = {server: left_to(case.format(server)) for server in SLOW_STORES}
        (other,) = filter(None, names.values())
        assert names[next(server for server in SLOW_STORES if case.format(server) == other)] == ""


def test_a_copy_from_one_server_to_the_other_is_not_left_out():
    assert left_to("tests/contract/test_it.py::test_x[mariadb-postgresql]") == ""
