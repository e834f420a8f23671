"""Settings that several components need: each gets the field that is made here."""

from collections.abc import Callable
from functools import partial

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import LIVE, setting

# fmt: off
poll: Callable[[], float] = partial(setting, "LCC_POLL", "2s", read.period, "How often a worker looks for changes other processes made.", LIVE)
stop_timeout: Callable[[], float] = partial(setting, "LCC_STOP_TIMEOUT", "30s", read.duration, "How long fetches in flight may go on when the process is asked to stop.", LIVE)
http_silence: Callable[[], float] = partial(setting, "LCC_HTTP_SILENCE", "60s", read.period, "Time in which a client of `lcc web` or `lcc files` takes nothing of its answer; then it is cut.")
health_file: Callable[[], str] = partial(setting, "LCC_HEALTH_FILE", "", str.strip, "File whose time every server process renews every 5 seconds while its event loop runs, for `lcc health`: one file for each container, in memory (`/tmp`). Empty = none.")
web_proxies: Callable[[], Networks] = partial(setting, "LCC_WEB_PROXIES", "", read.networks, "Addresses and networks of proxies in front of `lcc web`, separated by blanks, which are believed when they say in `X-Forwarded-For` whose request they bring; with any, who comes over a Unix socket is believed too.")
crawls_expected: Callable[[], int] = partial(setting, "LCC_ALARM_WORKERS", "1", read.whole, "Crawl processes that are expected: while fewer are at work there is an alarm, and the [dashboard](dashboard.md) says so; 0 = never.")
# fmt: on
