"""The fixtures of tests with real processes."""

from tests.harness import Lcc, Nginx, Served, corpora, make_lcc, nginx

__all__ = ["Lcc", "Nginx", "Served", "corpora", "make_lcc", "nginx"]
