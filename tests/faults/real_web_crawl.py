"""One crawl of all cases of the real web, by real pushes: what was fetched, stored and told."""

import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from lcc_scrapy.domain.providers import Provider
from tests.acceptance.pushers import Conversation
from tests.certificates import Authority
from tests.faults.real_web_case import Case, Step
from tests.faults.real_web_site import RealWebSite, Reply, page
from tests.harness import Lcc

SETTINGS = {
    "LCC_RETRY_DELAYS": "1s,1s",
    "LCC_HOST_BACKOFF": "1s",
    "LCC_FETCH_TIMEOUT": "15s",
    "LCC_MAX_REMOVAL": "100%",
    "LCC_ERRORS_KEPT": "10000",
    "LCC_FETCHES": "64",
}
RIGHT = "as it should"


@dataclass(frozen=True)
class Seen:
    """What became of a case; ``waits``: its URL is still in the queue."""

    content: bytes | None
    mimetype: str
    codes: tuple[int, ...]
    requests: int
    gap: float
    waits: bool

    def verdict(self, case: Case) -> str:
        """Say in a few words what is not as it should be."""
        if self.waits:
            return "waits"
        wrong = [] if self.content == case.wants else [_of_content(self.content, case)]
        if self.codes != case.codes:
            wrong.append(f"told {' '.join(map(str, self.codes)) or 'nothing'}")
        if not wrong and case.stored_type and self.mimetype != case.stored_type:
            wrong.append(f"type {self.mimetype}")
        if not wrong and case.requests is not None and self.requests != case.requests:
            wrong.append(f"{self.requests} requests")
        if not wrong and self.gap < case.gap:
            wrong.append("asked again too soon")
        return ", ".join(wrong) or RIGHT


def _of_content(content: bytes | None, case: Case) -> str:
    if content is None:
        return "copy removed" if case.held else "not stored"
    if content == case.held:
        return "old copy kept"
    return "stored" if case.wants is None else "other bytes stored"


class Stage:
    """A site with one host for each group of cases that share one, as its cases say."""

    def __init__(self, site: RealWebSite, cases: Sequence[Case], folder: Path) -> None:
        self.site, self.cases = site, cases
        self.authority = Authority()
        (folder / "tls").mkdir()
        self.trusted = folder / "tls" / "authority.pem"
        self.trusted.write_bytes(self.authority.pem)
        self.authority.issue("127.0.0.1").write(folder / "tls")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls" / "cert.pem", folder / "tls" / "key.pem")
        tls = {case.host: case.tls for case in cases}
        self.ports = {host: site.listen(context if is_tls else None) for host, is_tls in tls.items()}
        for case in cases:
            if case.robots:
                self.put(case, {"/robots.txt": case.robots})

    def origin(self, case: Case) -> str:
        return f"{'https' if case.tls else 'http'}://127.0.0.1:{self.ports[case.host]}"

    def url(self, case: Case) -> str:
        return self.origin(case) + case.place

    def is_earlier(self) -> list[Case]:
        """Let the site be as it was when the copies were fetched; return the cases that have one."""
        held = [case for case in self.cases if case.held is not None]
        for case in held:
            assert case.held is not None
            self.put(case, case.earlier or {case.place: (page(case.held),)})
        return held

    def is_now(self) -> None:
        for case in self.cases:
            self.put(case, {case.place: case.script, **case.further})
        self.site.asked.clear()

    def put(
        self, case: Case, scripts: Iterable[tuple[str, Sequence[Step]]] | dict[str, Sequence[Step]]
    ) -> None:
        port = self.ports[case.host]
        for path, script in dict(scripts).items():
            self.site.put(port, case.at(path), *(_on(port, step) for step in script))


def _on(port: int, step: Step) -> Step:
    """Name the site's own host where an answer says HOST."""
    if not isinstance(step, Reply) or b"HOST" not in step.head:
        return step
    named = (
        piece.replace(b"HOST", b"127.0.0.1:%d" % port) if isinstance(piece, bytes) else piece
        for piece in step.pieces
    )
    return replace(step, pieces=tuple(named))


class Crawl:
    """An LCC that fetches a stage twice: what it was earlier, and what it is now."""

    def __init__(self, lcc: Lcc, stage: Stage) -> None:
        self.lcc, self.stage = lcc, stage
        self.pids = {host: number for number, host in enumerate(stage.ports, 1)}

    def run(self, patience: float = 240) -> dict[Case, Seen]:
        self._register()
        self.lcc.start()
        held = self.stage.is_earlier()
        self._push(held, [case.attributes(case.held) if case.declared else {"mtime": 1} for case in held])
        self._wait(patience)
        self.stage.is_now()
        cases = self.stage.cases
        self._push(cases, [case.attributes(case.declared) or {"mtime": 2} for case in cases])
        self._wait(patience)
        return self._seen()

    def _register(self) -> None:
        roots: dict[str, dict[str, None]] = {host: {} for host in self.pids}
        for case in self.stage.cases:
            roots[case.host][self.stage.origin(case) + case.root] = None
        providers = [Provider(pid, "", allowprivate=True) for pid in self.pids.values()]
        self.lcc.register(*providers, roots=[list(those) for those in roots.values()])

    def _push(self, cases: Sequence[Case], declared: Sequence[dict[str, object]]) -> None:
        sets: dict[str, list[dict[str, object]]] = {}
        for case, attributes in zip(cases, declared, strict=True):
            given = {"curl": self.stage.url(case), "mimetype": case.mimetype, **attributes}
            sets.setdefault(case.host, []).append(given)
        for host, urls in sets.items():
            conversation = Conversation(self.lcc.port, self.pids[host])
            assert "init_accepted" in conversation.login_answer()
            told = conversation.push("partial", urls)
            assert f'received="{len(urls)}"' in told, told
            conversation.close()

    def _wait(self, patience: float) -> None:
        """Wait until the queue is empty, or ``patience`` seconds in which nothing was settled or asked for."""
        behind = [repr(self.stage.url(case)) for case in self.stage.cases if not case.group]
        counts = f"select count(*) from qdb where curl not in ({', '.join(behind) or repr('')})"
        left, asked, since = -1, 0, time.monotonic()
        while left and time.monotonic() - since < patience:
            time.sleep(0.25)
            spooled = self.lcc.is_spooled()
            now = int(str(self.lcc.sql(counts)[0][0])) + (1_000_000 if spooled else 0)
            if (now, len(self.stage.site.asked)) != (left, asked):
                left, asked, since = now, len(self.stage.site.asked), time.monotonic()

    def _seen(self) -> dict[Case, Seen]:
        rows = {
            str(curl): (machine, file, coding, mimetype)
            for curl, machine, file, coding, mimetype in self.lcc.sql(
                "select curl, fetched_machineid, fetched_fileid, file_encoding, mimetype from lccurl"
            )
        }
        queued = {str(curl) for (curl,) in self.lcc.sql("select curl from qdb")}
        told: dict[str, list[int]] = {}
        for url, code in self.lcc.sql("select url, code from urlerrors order by errorid"):
            told.setdefault(str(url), []).append(int(str(code)))
        times: dict[tuple[int, str], list[float]] = {}
        for one in self.stage.site.asked:
            times.setdefault((one.port, one.path), []).append(one.at)
        found = {}
        for case in self.stage.cases:
            url = self.stage.url(case)
            row = rows.get(url)
            asked = times.get((self.stage.ports[case.host], case.place), [])
            content = self.lcc.content(row[0], row[1], row[2]) if row else None
            gaps = [later - earlier for earlier, later in pairwise(asked)]
            found[case] = Seen(
                content, row[3] if row else "", tuple(told.get(url, ())), len(asked), gaps[0] if gaps else 0.0,
                url in queued,
            )  # fmt: skip
        return found
