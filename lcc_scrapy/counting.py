"""Scrapy's statistics of downloads, where its own middleware for them is not in use."""

from collections.abc import Callable

from scrapy.statscollectors import StatsCollector
from scrapy.utils.python import global_object_name


def counter(stats: StatsCollector | None) -> Callable[..., None]:
    """Return what adds to a statistic: its name, and how much (1)."""
    return (lambda _name, _count=1: None) if stats is None else stats.inc_value


class Downloads:
    """Counts requests, answers by status and errors by type, under the names that Scrapy gives them."""

    def __init__(self, stats: StatsCollector | None) -> None:
        self._count = counter(stats)

    def begun(self) -> None:
        """Count a request."""
        self._count("downloader/request_count")

    def answered(self, status: int, length: int) -> None:
        """Count an answer; ``length`` is that of its decoded body."""
        self._count("downloader/response_count")
        self._count(f"downloader/response_status_count/{status}")
        self._count("downloader/response_bytes", length)

    def failed(self, error: BaseException) -> None:
        """Count a request that brought no answer."""
        self._count("downloader/exception_count")
        self._count(f"downloader/exception_type_count/{global_object_name(type(error))}")
