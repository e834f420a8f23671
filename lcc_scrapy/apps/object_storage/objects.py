"""Contents as objects of S3, or of a server that speaks like it.

``<prefix>/<machineid>/<millions>/<thousands>/<fileid>``: the names are those of content files. Credentials
come from the environment (``AWS_ACCESS_KEY_ID`` and the like), never from a URL. An object is durable when
the server has acknowledged it. No browser is to render one, whatever its site said that it is.
"""

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from lcc_scrapy.content.files import ContentAway, Stored, relative_name
from lcc_scrapy.content.store import MakeContents
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import ConfigurationError, LccError, MissingExtra, NotDurable

if TYPE_CHECKING:
    from obstore.store import S3Store

AT_A_TIME = 16
"""Objects of one commit that are sent at a time."""

PART = 8 * 1024 * 1024
"""Bytes of a part; larger bodies are sent in parts (multipart upload), a few at a time."""

TIMEOUT, RETRYING = 30, 10
"""Seconds for a request, and for trying one again before its commit fails and is tried later."""

ATTACHMENT = "attachment"
_SHOWN_BY_NO_BROWSER = {"Content-Type": "application/octet-stream", "Content-Disposition": ATTACHMENT}

_BLOCK = 256 * 1024
_BATCH = 1000
_log = logging.getLogger(__name__)


def split_url(url: str) -> tuple[str, str, str]:
    """Return bucket, prefix and endpoint (empty = Amazon's) of ``s3://bucket/prefix?endpoint=http://host:port``.

    Raises ``ConfigurationError``, whose text holds nothing of the URL: there may be a password in it.
    """
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
        endpoint = "".join(query.pop("endpoint", []))
        server = urlsplit(endpoint)
        right = parts.scheme == "s3" and bool(parts.netloc) and not (parts.fragment or query)
        right = right and (not endpoint or (server.scheme in {"http", "https"} and bool(server.netloc)))
    except ValueError:
        right = False
    if not right:
        raise ConfigurationError(
            "LCC_CONTENT_URL: expected s3://BUCKET/PREFIX or s3://BUCKET/PREFIX?endpoint=https://HOST"
        )
    if "@" in parts.netloc or "@" in server.netloc:
        raise ConfigurationError(
            "LCC_CONTENT_URL: credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return parts.netloc, parts.path.strip("/"), endpoint


def _opened(url: str) -> "S3Store":
    bucket, prefix, endpoint = split_url(url)
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
        from obstore.store import S3Store  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("s3", "obstore") from None
    server: Any = {"endpoint": endpoint} if endpoint else {}
    try:
        return S3Store(
            bucket,
            prefix=prefix or None,
            client_options={
                "timeout": timedelta(seconds=TIMEOUT),
                "connect_timeout": timedelta(seconds=5),
                "allow_http": endpoint.startswith("http://"),
            },
            retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=RETRYING)},
            **server,
        )
    except (BaseError, ValueError, TypeError) as error:
        raise ConfigurationError(f"LCC_CONTENT_URL: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    """Return what an error says: its other lines are for those who debug the client."""
    return str(error).strip().partition("\n")[0][:300]


@contextmanager
def _as_os_error(what: str) -> Iterator[None]:
    """Turn errors of the client into ``FileNotFoundError`` or ``ContentAway``."""
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

    try:
        yield
    except ContentAway:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(None, "no such object", what) from None
    except (BaseError, OSError) as error:
        said = "there is no such bucket" if "NoSuchBucket" in str(error) else _first_line(error)
        raise ContentAway(None, f"object storage: {said}", what) from None


class ContentObjects:
    """The objects of one machine below a URL. Everything here blocks; call it off the event loop."""

    def __init__(self, url: str, machineid: int) -> None:
        self.machineid = machineid
        self._url = url.partition("?")[0].rstrip("/")
        self._objects = _opened(url)
        self._pool = ThreadPoolExecutor(AT_A_TIME, "lcc-objects")

    def name_of(self, fileid: int) -> str:
        """Return the URL of an object."""
        return f"{self._url}/{self._key(fileid)}"

    def _key(self, fileid: int, machineid: int | None = None) -> str:
        return relative_name(self.machineid if machineid is None else machineid, fileid)

    def keep(self, bodies: Sequence[tuple[int, Body]]) -> None:
        """Put bodies at their file ids: all, or none with ``NotDurable``.

        An object that cannot be taken back now has no row; the next start removes it
        (``cache/leftovers.py``).
        """
        sent = [self._pool.submit(self._put, fileid, body) for fileid, body in bodies]
        failed = [error for one in sent if (error := _error_of(one)) is not None]
        if failed:
            self.remove([fileid for fileid, _ in bodies])
            raise NotDurable(f"content object: {failed[0].strerror or failed[0]}") from failed[0]

    def _put(self, fileid: int, body: Body) -> None:
        content = Path(body.path) if body.path else bytes(body.to_store)
        key = self._key(fileid)
        with _as_os_error(key):
            self._objects.put(key, content, attributes=_SHOWN_BY_NO_BROWSER, chunk_size=PART)

    def open(self, fileid: int, machineid: int | None = None) -> IO[bytes]:
        """Open an object for reading, as it arrives; raises ``FileNotFoundError`` or another ``OSError``."""
        key = self._key(fileid, machineid)
        with _as_os_error(key), self._in_bucket():
            stream = self._objects.get(key).stream(min_chunk_size=_BLOCK)
        return io.BufferedReader(_Arriving(iter(stream), key), _BLOCK)

    def stat(self, fileid: int) -> Stored:
        """Tell size and time of an object; raises as ``open`` does."""
        key = self._key(fileid)
        with _as_os_error(key), self._in_bucket():
            found = self._objects.head(key)
        return Stored(found["size"], found["last_modified"].timestamp())

    def address(self, fileid: int, machineid: int, size: int, seconds: int) -> str | None:
        """Return a URL at which anybody may read an object for so many seconds (7 days at most).

        None where the bucket has another size of it, or does not call it an attachment: it was put without
        that word, or the server has not kept it. Raises as ``open`` does.
        """
        from obstore import sign  # noqa: PLC0415 - an extra

        key = self._key(fileid, machineid)
        with _as_os_error(key), self._in_bucket():
            found = self._objects.get(key, options={"head": True})
            as_it_should = found.attributes.get("Content-Disposition") == ATTACHMENT
            if found.meta["size"] != size or not as_it_should:
                return None
            return sign(self._objects, "GET", key, timedelta(seconds=seconds))

    @contextmanager
    def _in_bucket(self) -> Iterator[None]:
        """Tell an object that is missing from a bucket that is: else all contents would count as lost."""
        try:
            yield
        except FileNotFoundError:
            next(self._listed(str(self.machineid)), None)
            raise

    def remove(self, fileids: Iterable[int]) -> list[int]:
        """Delete objects and return which are gone: all, or none of a thousand while the server is away."""
        wanted, gone = list(fileids), list[int]()
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            try:
                self._delete([self._key(fileid) for fileid in batch])
            except OSError as error:
                _log.warning("%d content objects cannot be deleted now: %s", len(batch), error.strerror)
                break
            gone += batch
        return gone

    def _delete(self, keys: list[str]) -> None:
        try:
            with _as_os_error("delete"):
                self._objects.delete(keys)
        except FileNotFoundError:  # some servers say so of what is gone already
            return

    def files_from(self, first: int) -> list[int]:
        """Return the ids of the objects that lie beside that of ``first``, from that one on."""
        found = [fileid for fileid, _ in self._listed(self._key(first).rpartition("/")[0])]
        return sorted(fileid for fileid in found if fileid >= first)

    def sync_removals(self, fileid: int) -> None:
        """Do nothing: what S3 acknowledged lasts."""

    def all_files(self) -> Iterator[tuple[int, int]]:
        """Yield (file id, size) of every object of this machine."""
        return self._listed(str(self.machineid))

    def _listed(self, prefix: str | None) -> Iterator[tuple[int, int]]:
        with _as_os_error("list"):
            for page in self._objects.list(prefix, chunk_size=_BATCH):
                for one in page:
                    name = one["path"].rpartition("/")[2]
                    if name.isdigit():
                        yield int(name), one["size"]

    def check(self) -> None:
        """Put, get and delete a small object; raises ``ConfigurationError``, whose text says what failed."""
        key = f"{self.machineid}/doctor/lcc-doctor"
        for what, call in (
            ("put", lambda: self._objects.put(key, b"lcc")),
            ("get", lambda: self._objects.get(key).bytes()),
            ("list", lambda: next(self._listed(key.rpartition("/")[0]), None)),
            ("delete", lambda: self._objects.delete([key])),
        ):
            try:
                with _as_os_error(key):
                    call()
            except OSError as error:
                raise ConfigurationError(f"{self._url}: cannot {what} an object: {error.strerror}") from None

    def highest_id(self) -> int:
        """Return the highest file id below the URL, whichever machine's; 0 = there is none."""
        try:
            return max((fileid for fileid, _ in self._listed(None)), default=0)
        except OSError as error:
            raise LccError(f"{error.strerror}") from None


CONTENTS: MakeContents = ContentObjects


def _error_of(sent: Future[None]) -> OSError | None:
    error = sent.exception()
    if error is None or isinstance(error, OSError):
        return error
    raise error


class _Arriving(io.RawIOBase):
    """Reads an object while it arrives."""

    def __init__(self, pieces: Iterator[Any], key: str) -> None:
        self._pieces = pieces
        self._key = key
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it; 0 = the end."""
        target = memoryview(buffer).cast("B")
        while not self._rest:
            with _as_os_error(self._key):
                piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece).cast("B")
        taken = self._rest[: len(target)]
        target[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)
