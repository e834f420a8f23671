"""What is left to ``make soak``: of two servers one, whichever of them is asked about."""

from tests.conftest import SLOW_STORES, left_out


def test_a_use_case_is_left_out_on_one_server_and_each_server_has_its_share():
    cases = [f"test_{number}[{{}}-x]" for number in range(100)]
    left = [{left_out(case.format(server)) for server in SLOW_STORES} for case in cases]
    assert {len(one) for one in left} == {1}
    assert all(20 < sum(server in one for one in left) < 80 for server in SLOW_STORES)
