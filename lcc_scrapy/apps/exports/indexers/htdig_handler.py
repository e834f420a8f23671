"""Answers ht://Dig (``handler PROTOCOL URL CONFIGURATION``) with the file that the URL names, or with 404.

ht://Dig starts it once for each page: it imports nothing but what Python has loaded anyway, for imports
took three quarters of the time of indexing.
"""

import posix
import sys

_SITE = b"http://lcc/"
_DOCID, _NAME = 32, 41
_HEX = frozenset(b"0123456789abcdef")
_BLOCK = 1 << 18


def _name_in(url: bytes) -> bytes:
    """Return the name of the page that a URL is about, empty when it is about none."""
    name, rest = url[len(_SITE) :][:_NAME], url[len(_SITE) + _NAME :]
    digits = name[:_DOCID] + name[_DOCID + 1 :]
    is_one = url.startswith(_SITE) and len(name) == _NAME and name[_DOCID : _DOCID + 1] == b"-"
    return name if is_one and _HEX.issuperset(digits) and rest[:1] in {b"", b"/"} else b""


def _unquoted(url: bytes) -> bytes:
    first, *rest = url.split(b"%")
    return first + b"".join(map(_decoded, rest))


def _decoded(part: bytes) -> bytes:
    try:
        return bytes.fromhex(part[:2].decode("ascii")) + part[2:] if len(part) > 1 else b"%" + part
    except ValueError:
        return b"%" + part


def _read(path: bytes) -> bytes:
    """Return a whole file, empty when it is not there: pages have a few MB at most."""
    try:
        descriptor = posix.open(path, posix.O_RDONLY)
    except FileNotFoundError:
        return b""
    return b"".join(iter(lambda: posix.read(descriptor, _BLOCK), b""))


def _is_of(answer: bytes, url: bytes) -> bool:
    """Tell whether an answer is that of a URL, however ht://Dig escaped it."""
    head = answer[: answer.find(b"\n\n")].split(b"\n")
    said = next((line[3:] for line in head if line.startswith(b"u:\t")), b"")
    return _unquoted(said) == _unquoted(url)


def main() -> None:
    """Write the answer to stdout."""
    own_path, _, url, *_ = (text.encode(errors="surrogateescape") for text in sys.argv)
    name, folder = _name_in(url), own_path.rpartition(b"/")[0]
    answer = _read(b"%s/pages/%s/%s" % (folder, name[:2], name)) if name else b""
    if not (answer and _is_of(answer, url)):  # of none, or what a page embeds, taken as relative to it
        answer = b"s:\t404\nr:\tNot Found\nu:\t%s\n\n" % url
    left = memoryview(answer)
    while left:
        left = left[posix.write(1, left) :]


if __name__ == "__main__":
    main()
