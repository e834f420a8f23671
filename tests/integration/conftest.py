"""The fixtures of tests with real processes."""

from tests.harness import Lcc, make_lcc

__all__ = ["Lcc", "make_lcc"]
