"""Providers at work: each pushes one set after the other, in a thread of its own, and notes what it was told."""

import re
import socket
import threading
import time
from dataclasses import dataclass, field
from hashlib import md5
from xml.sax.saxutils import quoteattr

from tests.harness import PASSWORD
from tests.integration.site import Answer, Site, page

INIT = f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="%d" passwd="{PASSWORD}"/></lococa:init>'
PAUSE = 0.3


class Conversation:
    """Dialect A as it stands in the seed, byte by byte."""

    def __init__(self, port: int, pid: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 300)
        self._socket.sendall((INIT % pid).encode())
        self._heard = b""

    def login_answer(self) -> str:
        return self._until(b"</lococa:init_accepted>", b"</lococa:init_rejected>")

    def push(self, kind: str, urls: list[dict[str, object]]) -> str:
        lines = (
            f"<url {' '.join(f'{name}={quoteattr(str(value))}' for name, value in url.items())}/>"
            for url in urls
        )
        self._socket.sendall(f'<lococa:set set="{kind}">{"".join(lines)}</lococa:set>'.encode())
        return self._until(b"</lococa:set_result>")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)
        while self._socket.recv(65536):
            pass
        self._socket.close()

    def _until(self, *ends: bytes) -> str:
        while not any(end in self._heard for end in ends):
            more = self._socket.recv(65536)
            assert more, f"the UNS hung up after {self._heard!r}"
            self._heard += more
        answer, self._heard = self._heard, b""
        return answer.decode()


@dataclass
class Told:
    """What a provider was told: a code, or 0 for "accepted". Times are those of the monotonic clock."""

    asked: float
    code: int
    text: str


@dataclass(eq=False)
class Pusher(threading.Thread):
    """A provider that pushes new documents, or with ``full`` all it has each time.

    A set that is not accepted is pushed again, as ``lcccp`` would. ``seconds`` is how long a body takes.
    """

    pid: int
    port: int
    site: Site
    root: str
    full: bool = False
    seconds: float = 0.0
    told: list[Told] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)
    accepted: list[int] = field(default_factory=list)
    """Numbers of the logins whose sets were accepted."""
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        super().__init__(name=f"provider {self.pid}")
        self._ending = threading.Event()
        self._giving_up = threading.Event()

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                urls = self._publish(1 if self.seconds else 3)
                while not self._push(urls) and not self._giving_up.wait(PAUSE):
                    pass
                self._ending.wait(max(PAUSE, self.seconds))
        except BaseException as error:
            self.failure = error

    def end(self) -> None:
        """Push no further set; the one under way is accepted first."""
        self._ending.set()
        self.join(300)
        assert not self.is_alive(), f"provider {self.pid} still waits to be let in"
        assert self.failure is None, f"provider {self.pid}: {self.failure!r}"

    def give_up(self) -> None:
        """End in any case."""
        self._ending.set()
        self._giving_up.set()
        self.join(300)

    def _publish(self, count: int) -> list[str]:
        for _ in range(count):
            path = f"/p{self.pid}/{len(self.bodies)}.html"
            self.bodies[path] = f"<p>{path}</p>".encode() * 20
            self.site.put(path, _served(self.bodies[path], self.seconds))
        return list(self.bodies) if self.full else list(self.bodies)[-count:]

    def _push(self, paths: list[str]) -> bool:
        asked = time.monotonic()
        conversation = Conversation(self.port, self.pid)
        answer = conversation.login_answer()
        seq = re.search(r'<connect_info seq="(\d+)"', answer)
        if seq:
            answer = conversation.push(
                "full" if self.full else "partial", [self._declared(path) for path in paths]
            )
        conversation.close()
        accepted = f'<set_accepted received="{len(paths)}"/>' in answer
        refused = re.search(r'_rejected(?:>\s*<reason)? code="(\d+)"', answer)
        self.told.append(Told(asked, 0 if accepted else int(refused[1]), answer))
        if accepted:
            self.accepted.append(int(seq[1]))
        return accepted

    def _declared(self, path: str) -> dict[str, object]:
        body = self.bodies[path]
        return {
            "c": self.root + path,
            "mimetype": "text/html",
            "len": len(body),
            "md5": md5(body).hexdigest(),
        }


def _served(body: bytes, seconds: float) -> Answer:
    """Return an answer whose body trickles for ``seconds``, and takes a moment in any case."""
    (whole,) = page(body).pieces
    if not seconds:
        return Answer([whole], last=False, wait=0.05)
    pieces = [whole[:-8], *(whole[-8 + number : len(whole) - 7 + number] for number in range(8))]
    return Answer(pieces, last=False, gap=seconds / 8)
