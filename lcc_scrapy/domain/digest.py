"""HTTP Digest authentication (RFC 7616) of a client: which challenge is answered, and how.

MD5 and SHA-256, also as ``-sess``; qop=auth. Whoever asks for the password in another way gets no answer.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

_MOST = 8192
"""Bytes of challenges that are read."""

_HASHES = {"sha-256": hashlib.sha256, "md5": hashlib.md5}
"""Best first."""

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PART = re.compile(rf'({_WORD})(?:[ \t]*(=)[ \t]*("(?:[^"\\]|\\.)*"|{_WORD})?)?')
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a site wants to be answered. ``realm``, ``nonce`` and ``opaque`` are bytes of Latin 1, unquoted.

    ``opaque`` is None where there is none.
    """

    realm: str
    nonce: str
    algorithm: str = "MD5"
    opaque: str | None = None

    @property
    def _hash(self) -> str:
        return self.algorithm.lower().removesuffix("-sess")

    @property
    def rank(self) -> int:
        """The place of its algorithm, the best first; raises ``ValueError`` for one that is not known."""
        return list(_HASHES).index(self._hash)

    def digest(self, *parts: str) -> str:
        """Return H of RFC 7616, 3.4.2, of parts with colons between them."""
        return _HASHES[self._hash](":".join(parts).encode("latin-1")).hexdigest()


@dataclass(frozen=True, slots=True)
class Login:
    """A user and a password, which is shown to nobody."""

    user: str
    password: str = field(repr=False)

    def answer(self, asked: Challenge, method: str, target: str, count: int, cnonce: str) -> bytes:
        """Return the Authorization of the request number ``count`` (from 1) that uses a nonce.

        ``target`` is path and query. RFC 7616, 3.4.
        """
        user, password = (_bytes(text) for text in (self.user, self.password))
        secret = asked.digest(user, asked.realm, password)
        if asked.algorithm.lower().endswith("-sess"):
            secret = asked.digest(secret, asked.nonce, cnonce)
        number = f"{count:08x}"
        response = asked.digest(secret, asked.nonce, number, cnonce, "auth", asked.digest(method, target))
        said = [
            self._named(),
            f"realm={_quoted(asked.realm)}",
            f"uri={_quoted(target)}",
            f"algorithm={asked.algorithm}",
            f"nonce={_quoted(asked.nonce)}",
            f"nc={number}",
            f"cnonce={_quoted(cnonce)}",
            "qop=auth",
            f"response={_quoted(response)}",
            *([] if asked.opaque is None else [f"opaque={_quoted(asked.opaque)}"]),
        ]
        return f"Digest {', '.join(said)}".encode("latin-1")

    def _named(self) -> str:
        if self.user.isascii():
            return f"username={_quoted(self.user)}"
        return f"username*=UTF-8''{quote(self.user, safe='')}"


def challenge_in(fields: Iterable[bytes], before: Challenge | None = None) -> Challenge | None:
    """Return the best challenge in the fields WWW-Authenticate of an answer, None = none can be answered.

    ``before`` is one that the site made earlier: a worse one is not answered, for it may be somebody else's,
    who wants to try passwords against the answer.
    """
    text = ",".join(field.decode("latin-1") for field in fields)
    if len(text) > _MOST or _CONTROL.search(text.replace("\t", " ")):
        return None
    known = [made for values in _digests(text) if (made := _made(values)) is not None]
    best = min(known, key=lambda one: one.rank, default=None)
    return None if best and before and best.rank > before.rank else best


def _digests(text: str) -> Iterator[dict[str, str]]:
    """Yield the values of each challenge of Digest; the first value of a name counts."""
    values: dict[str, str] = {}
    wanted = False
    for name, equals, value in _PART.findall(text):
        if equals:
            values.setdefault(name.lower(), _unquoted(value))
            continue
        if wanted:
            yield values
        wanted, values = name.lower() == "digest", {}
    if wanted:
        yield values


def _made(values: Mapping[str, str]) -> Challenge | None:
    offers = [offer.strip().lower() for offer in values.get("qop", "").split(",")]
    if "auth" not in offers or not values.get("nonce") or "realm" not in values:
        return None
    made = Challenge(values["realm"], values["nonce"], values.get("algorithm", "MD5"), values.get("opaque"))
    try:
        return made if made.rank >= 0 else None
    except ValueError:
        return None


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _bytes(text: str) -> str:
    """Return the bytes of UTF-8 as characters."""
    return text.encode().decode("latin-1")
