"""Small contents in object storage: commits beside those to this disk, or obstore beside s3fs.

    python bench/object_storage.py [s3://BUCKET/PREFIX?endpoint=…]
    python bench/object_storage.py --clients [--server rclone]

Rounds are interleaved. Without a URL it starts a server of the tests: moto's in memory, which is slow, or
rclone's on this disk. ``--clients`` puts, reads and deletes with 16 requests at a time, and counts the CPU of
this process alone. s3fs wants other versions of botocore than the tests have: give it an environment of its
own (``pip install s3fs -e '.[s3]'``), and start this there with a URL and ``AWS_ACCESS_KEY_ID`` and the like.
``python bench/crawl.py --only lcc-sqlite lcc-s3 --providers 64`` compares whole crawls.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from crawling.command_line import parser

from lcc_scrapy.apps.object_storage.objects import AT_A_TIME, ContentObjects, split_url
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.domain.cache import LazyBody

COMMIT, ROUNDS, SIZE = 200, 7, 10_000
VERBS = ("put", "read", "delete")

Bodies = dict[str, bytes]
"""Contents by their keys."""


# --- commits, on disk and in the storage ----------------------------------------------------------


def rate(contents: ContentStore, first: int) -> float:
    """Return contents a second of one commit."""
    bodies = [(first + number, LazyBody(os.urandom(SIZE))) for number in range(COMMIT)]
    began = time.perf_counter()
    contents.keep(bodies)
    took = time.perf_counter() - began
    contents.remove(fileid for fileid, _ in bodies)
    return COMMIT / took


def compare_commits(url: str, rounds: int) -> None:
    """Measure both places, interleaved."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        stores: dict[str, ContentStore] = {
            "disk": ContentFiles(Path(folder), 1),
            "objects": ContentObjects(url, 1),
        }
        rates: dict[str, list[float]] = {name: [] for name in stores}
        for number in range(1, rounds + 1):
            for name, contents in stores.items():
                rates[name].append(rate(contents, number * 1000))
    for name, found in rates.items():
        print(f"{name}: {told(found, '.0f')} a second")


# --- clients --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Client:
    """A client of S3; each verb ends when all is done."""

    put: Callable[[Bodies], object]
    read: Callable[[list[str]], Bodies]
    delete: Callable[[list[str]], object]


@contextmanager
def obstore(url: str) -> Iterator[Client]:
    """Use obstore as the LCC does: by threads."""
    from obstore.store import S3Store  # noqa: PLC0415 - an extra

    bucket, prefix, endpoint = split_url(url)
    options = {"allow_http": endpoint.startswith("http://")}
    store = S3Store(bucket, prefix=prefix, endpoint=endpoint, client_options=options)
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        yield Client(
            lambda bodies: list(threads.map(store.put, bodies, bodies.values())),
            lambda keys: dict(
                zip(keys, threads.map(lambda key: bytes(store.get(key).bytes()), keys), strict=True)
            ),
            store.delete,
        )


@contextmanager
def s3fs(url: str) -> Iterator[Client]:
    """Use s3fs by its calls for many objects at a time."""
    from s3fs import S3FileSystem  # noqa: PLC0415 - no dependency of ours

    bucket, prefix, endpoint = split_url(url)
    files = S3FileSystem(endpoint_url=endpoint or None, skip_instance_cache=True, use_listings_cache=False)
    below = f"{bucket}/{prefix}/"

    def read(keys: list[str]) -> Bodies:
        found = files.cat([below + key for key in keys], batch_size=AT_A_TIME)
        return {name.removeprefix(below): body for name, body in found.items()}

    yield Client(
        lambda bodies: files.pipe({below + key: body for key, body in bodies.items()}, batch_size=AT_A_TIME),
        read,
        lambda keys: files.rm([below + key for key in keys]),
    )


CLIENTS = {"obstore": obstore, "s3fs": s3fs}


def compare_clients(url: str, rounds: int) -> None:
    """Measure all clients that are installed, interleaved; another one begins each round."""
    with ExitStack() as opened:
        clients = {
            name: opened.enter_context(client(url)) for name, client in CLIENTS.items() if is_installed(name)
        }
        found = {(name, verb): list[tuple[float, float]]() for name in clients for verb in VERBS}
        names, fresh = list(clients), count()
        for number in range(-1, rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                taken = measured(clients[name], next(fresh))
                if number >= 0:  # the first round opens connections
                    for verb in VERBS:
                        found[name, verb].append(taken[verb])
    for (name, verb), runs in found.items():
        rates, cpu = [one for one, _ in runs], [one for _, one in runs]
        print(f"{name} {verb}: {told(rates, '.0f')} a second, {told(cpu, '.2f')} ms of CPU each")


def is_installed(name: str) -> bool:
    """Tell whether a client can be measured, and print why not, or which version it is."""
    try:
        print(f"{name} {version(name)}")
    except PackageNotFoundError:
        print(f"{name} is not measured: it is not installed (see --help)")
        return False
    return True


def measured(client: Client, number: int) -> dict[str, tuple[float, float]]:
    """Return contents a second, and ms of CPU for each, of every verb."""
    bodies = {f"{number}/{one}": os.urandom(SIZE) for one in range(COMMIT)}
    taken = {}
    for verb, call in (
        ("put", lambda: client.put(bodies)),
        ("read", lambda: client.read(list(bodies))),
        ("delete", lambda: client.delete(list(bodies))),
    ):
        began, used = time.perf_counter(), time.process_time()
        got = call()
        taken[verb] = COMMIT / (time.perf_counter() - began), 1000 * (time.process_time() - used) / COMMIT
        if verb == "read" and got != bodies:
            raise SystemExit("what was read is not what was put")
    return taken


def told(found: list[float], form: str) -> str:
    """Return a median with its bounds."""
    low, middle, high = (format(one, form) for one in (min(found), statistics.median(found), max(found)))
    return f"{middle} ({low} to {high}, n={len(found)})"


# --- servers --------------------------------------------------------------------------------------


@contextmanager
def server(kind: str) -> Iterator[str]:
    """Run a server of the tests. Gives the URL of contents there."""
    from tests.s3_server import CREDENTIALS, s3_on_disk, s3_server  # noqa: PLC0415 - not where a URL is given

    os.environ.update(CREDENTIALS)
    if kind == "moto":
        with s3_server() as running:
            yield running.url
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, s3_on_disk(Path(folder)) as on_disk:
        yield on_disk.url


def main() -> None:
    """Measure what is asked for."""
    given = options()
    with ExitStack() as running:
        url = given.url or running.enter_context(server(given.server))
        compare = compare_clients if given.clients else compare_commits
        compare(url, given.rounds)
    print("load {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument("url", nargs="?", help="of the storage; its keys may be overwritten")
    options.add_argument("--server", choices=("moto", "rclone"), default="moto", help="where no URL is given")
    options.add_argument("--clients", action="store_true", help="obstore beside s3fs")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    return options.parse_args()


if __name__ == "__main__":
    main()
