"""One Redis key that producers of scrapy-redis fill: taken in batches, each removed when it is queued.

A *batch* is moved from the key to a list of its own in one step, and stays there until it is acknowledged. A
kill at any moment leaves it there; the next run gets the same batch again. All methods block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from lcc_scrapy.domain.errors import ConfigurationError, LccError, MissingExtra
from lcc_scrapy.machine.redis_urls import class_of, errors, why

ITEMS, BYTES = 500, 4_000_000
"""Bounds of one batch; the last item may pass the second."""

REFUSED = 10_000
"""Refused items that are kept; the oldest go."""

_SOCKET_SECONDS = 5

# A batch that was not acknowledged comes first. Its first element is its id.
_TAKE = """
local batch = redis.call('LRANGE', KEYS[2], 0, -1)
if #batch > 0 then return batch end
local kind = redis.call('TYPE', KEYS[1]).ok
local take = {
    list = function() return redis.call('LPOP', KEYS[1]) end,
    set = function() return redis.call('SPOP', KEYS[1]) end,
    zset = function() return redis.call('ZPOPMAX', KEYS[1])[1] end,
}
if kind == 'none' then return {} end
if not take[kind] then return redis.error_reply('LCC ' .. kind) end
local size = 0
while #batch < tonumber(ARGV[2]) and size < tonumber(ARGV[3]) do
    local item = take[kind]()
    if not item then break end
    batch[#batch + 1] = item
    size = size + #item
end
table.insert(batch, 1, ARGV[1])
redis.call('RPUSH', KEYS[2], unpack(batch))
return batch
"""

# Whoever lost its claim may come late: only the batch that is there is acknowledged.
_ACKNOWLEDGE = """
if redis.call('LINDEX', KEYS[1], 0) ~= ARGV[1] then return 0 end
if #ARGV > 2 then
    redis.call('LPUSH', KEYS[2], unpack(ARGV, 3))
    redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[2]) - 1)
end
redis.call('DEL', KEYS[1])
return 1
"""

_COUNT = "return redis.call('LLEN', KEYS[1])"


class RedisAway(LccError):
    """Redis does not answer, or does not do what it is asked; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that were moved out of a key together; ``id`` is theirs alone."""

    id: str
    items: tuple[bytes, ...]


class RedisKey:
    """A list, set or sorted set; ``reader`` names who drains it, so that each has batches of its own.

    Items come in the order in which scrapy-redis takes them: a list from its head, a set in any order, a
    sorted set by falling score.
    """

    def __init__(self, client: Any, key: str, reader: str) -> None:
        self._key = key
        # Keys of one hash tag lie in one slot of a cluster, where a script may use them together.
        base = key if "{" in key else f"{{{key}}}"
        self.batch_key = f"{base}:lcc:{reader}:batch"
        self.refused_key = f"{base}:lcc:{reader}:refused"
        self._client = client

    def take(self) -> Batch | None:
        """Return the batch that was not acknowledged, or the next one; None = the key is empty."""
        taken = self._call(_TAKE, [self._key, self.batch_key], [uuid4().hex, ITEMS, BYTES])
        return Batch(taken[0].decode("ascii"), tuple(taken[1:])) if taken else None

    def acknowledge(self, batch: Batch, refused: Sequence[bytes] = ()) -> None:
        """Forget a batch, and keep what was refused of it beside the key."""
        self._call(_ACKNOWLEDGE, [self.batch_key, self.refused_key], [batch.id, REFUSED, *refused])

    def under_way(self) -> int:
        """Return how many items of a batch were not acknowledged."""
        return max(0, int(self._call(_COUNT, [self.batch_key], [])) - 1)

    def _call(self, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        from redis.exceptions import ResponseError  # noqa: PLC0415 - an extra

        try:
            return self._client.register_script(script)(keys=keys, args=arguments)
        except ResponseError as error:
            kind = str(error).removeprefix("LCC ")
            if kind != str(error):
                what = f"is a {kind}, not a list, set or sorted set"
                raise RedisAway(f"Redis key {self._key}: it {what}") from None
            raise RedisAway(f"Redis key {self._key}: {error}") from None
        except errors() as error:
            raise RedisAway(f"Redis does not answer: {why(error)}") from None


def client_of(settings: Mapping[str, Any], url: str) -> Any:
    """Return a client as scrapy-redis makes it of the settings of a project (``REDIS_*``).

    ``url`` goes before REDIS_URL; both may name Sentinels or a cluster, which scrapy-redis does not know.
    Raises ``MissingExtra``, and ``ConfigurationError`` for settings that make no client. It connects with its
    first command.
    """
    try:
        from scrapy_redis.connection import get_redis_from_settings  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("redis", "scrapy-redis") from error
    from scrapy.settings import Settings  # noqa: PLC0415

    given = Settings({name: value for name, value in settings.items() if name.startswith("REDIS_")})
    timeouts = {"socket_timeout": _SOCKET_SECONDS, "socket_connect_timeout": _SOCKET_SECONDS}
    if url:
        given.set("REDIS_URL", url, priority="cmdline")
    named = class_of(given.get("REDIS_URL") or "")
    kind = {"redis_cls": named} if named else {}
    given.set("REDIS_PARAMS", {**timeouts, **given.getdict("REDIS_PARAMS"), **kind}, priority="cmdline")
    given.set("REDIS_DECODE_RESPONSES", False, priority="cmdline")  # items stay bytes
    try:
        return get_redis_from_settings(given)
    except Exception as error:  # a class that the settings name, or a URL of another scheme
        reason = "the URL is none" if isinstance(error, ValueError) else error  # its text may hold a password
        raise ConfigurationError(f"LCC_REDIS_URL and REDIS_* make no client of Redis: {reason}") from error
