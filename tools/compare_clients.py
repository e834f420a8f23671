# ruff: noqa: INP001 - tools are no package
"""Let five clients ask a site for all that real sites were seen to send, and write ``docs/real-web.md``.

``python -m tools.compare_clients`` renews the columns of curl, wget, Chromium and Scrapy, and "after" for the
LCC of this checkout. ``--column before`` writes what an older checkout does; the other column stays.
``--kinds 5,14`` renews some lines only. Nothing leaves this machine.
"""

import argparse
import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.faults.real_web_case import Case
from tests.faults.real_web_cases import cases
from tests.faults.real_web_crawl import RIGHT, SETTINGS, Crawl, Stage
from tests.faults.real_web_site import RealWebSite
from tests.harness import lccs

DOCUMENT = Path(__file__).parents[1] / "docs" / "real-web.md"
SPIDER = Path(__file__).with_name("compared_spider.py")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OK = 200
SERVER_ERROR = 8
"""wget's exit status for an answer that is not 200."""
SECONDS = 6
"""How long a client waits for one URL."""
COLUMNS = ("before", "after", "curl", "wget", "Chromium", "Scrapy")
AT_MOST = 3
"""Different outcomes that a cell names, the most frequent ones."""
FETCHED = """async ([urls, seconds]) => {
    const one = async url => {
        try {
            const signal = AbortSignal.timeout(seconds * 1000);
            const answer = await fetch(url, {cache: "no-store", credentials: "include", signal});
            if (answer.status !== 200) return {status: answer.status};
            const blob = await answer.blob();
            const data = await new Promise(resolve => {
                const reader = new FileReader();
                reader.onload = () => resolve(reader.result.slice(reader.result.lastIndexOf(",") + 1));
                reader.readAsDataURL(blob);
            });
            return {status: answer.status, body: data, type: blob.type};
        } catch (error) {
            return {status: 0, error: String(error)};
        }
    };
    const found = [];
    for (const url of urls) found.push(await one(url));
    return found;
}"""


@dataclass(frozen=True)
class Got:
    """What a client made of a URL; ``status`` 0: it says that something is wrong."""

    status: int
    body: bytes = b""

    def word(self, case: Case) -> str:
        if self.status == 0:
            return "error"
        if self.status != OK:
            return "status"
        return "page" if self.body == case.wants else "other bytes"


def curl(urls: Sequence[str], folder: Path) -> list[Got]:
    options = ["-sSLk", "--compressed", "--cookie", "", "--max-time", str(SECONDS), "-w", "%{http_code}"]

    def one(url: str) -> Got:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            done = subprocess.run(["curl", *options, "-o", file.name, url], capture_output=True, check=False)
            return Got(
                int(done.stdout[-3:] or 0) if done.returncode == 0 else 0, Path(file.name).read_bytes()
            )

    with ThreadPoolExecutor(2) as both:
        return list(both.map(one, urls))


def wget(urls: Sequence[str], folder: Path) -> list[Got]:
    options = [
        "--no-config",
        "-nv",
        "-S",
        "--tries=1",
        f"--timeout={SECONDS}",
        "--compression=auto",
        "--no-check-certificate",
    ]

    def one(url: str) -> Got:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            command = ["timeout", str(2 * SECONDS), "wget", *options, "-O", file.name, url]
            done = subprocess.run(command, capture_output=True, cwd=folder, check=False)
            statuses = re.findall(rb"(?im)^\s*HTTP/[\d.]+\s+(\d{3})", done.stderr)
            if done.returncode == SERVER_ERROR and statuses:
                return Got(int(statuses[-1]) or 1)
            return Got(0 if done.returncode else OK, Path(file.name).read_bytes())

    with ThreadPoolExecutor(2) as both:
        return list(both.map(one, urls))


def chromium(urls: Sequence[str], _folder: Path) -> list[Got]:
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-web-security"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        tab = browser.new_context(ignore_https_errors=True).new_page()
        tab.set_default_timeout(0)
        tab.goto(urls[0].rpartition("/")[0] + "/blank")
        found: list[dict[str, Any]] = tab.evaluate(FETCHED, [list(urls), SECONDS])
        browser.close()
    return [Got(one["status"], base64.b64decode(one.get("body", ""))) for one in found]


def scrapy(urls: Sequence[str], folder: Path) -> list[Got]:
    (folder / "urls.json").write_text(json.dumps(urls))
    command = [
        sys.executable,
        "-m",
        "scrapy",
        "runspider",
        str(SPIDER),
        "-L",
        "CRITICAL",
        "-s",
        f"DOWNLOAD_TIMEOUT={SECONDS}",
    ]
    subprocess.run(command, cwd=folder, check=True)
    lines = [json.loads(line) for line in (folder / "found.jsonl").read_text().splitlines()]
    found = {line["number"]: Got(line["status"], base64.b64decode(line["body"])) for line in lines}
    return [found.get(number, Got(0)) for number in range(len(urls))]


CLIENTS: dict[str, Callable[[Sequence[str], Path], list[Got]]] = {
    "curl": curl,
    "wget": wget,
    "Chromium": chromium,
    "Scrapy": scrapy,
}


def asked_by(client: str, chosen: Sequence[Case], folder: Path) -> dict[Case, str]:
    """Return what a client made of each case, of a site of its own."""
    compared = [case for case in chosen if case.compared]
    if not compared:
        return {}
    with RealWebSite() as site, tempfile.TemporaryDirectory(dir=folder) as own:
        stage = Stage(site, compared, Path(own))
        stage.is_now()
        found = CLIENTS[client]([stage.url(case) for case in compared], Path(own))
    return {case: got.word(case) for case, got in zip(compared, found, strict=True)}


def crawled(chosen: Sequence[Case], folder: Path, patience: float) -> dict[Case, str]:
    with RealWebSite() as site, lccs(folder) as make:
        stage = Stage(site, chosen, folder)
        lcc = make(**SETTINGS, SSL_CERT_FILE=str(stage.trusted))
        return {case: seen.verdict(case) for case, seen in Crawl(lcc, stage).run(patience).items()}


# --- the document ---------------------------------------------------------------------------------------


def wanted(case: Case) -> str:
    if case.codes:
        return f"told {' '.join(map(str, case.codes))}"
    return "stored"


def cell(words: Sequence[str]) -> str:
    """Return the outcomes of a group, the most frequent first."""
    counts = Counter(words).most_common()
    if len(counts) == 1:
        return counts[0][0]
    named = [f"{word}: {count}" for word, count in counts[:AT_MOST]]
    rest = sum(count for _, count in counts[AT_MOST:])
    return "; ".join(named + ([f"others: {rest}"] if rest else []))


def rows(text: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the table that a document has: by kind and group, what each column says."""
    found = {}
    for line in text.splitlines():
        cells = [one.strip() for one in line.strip("|").split(" | ")]
        if re.match(r"\| \d+ \|", line) and len(cells) == len(COLUMNS) + 4:
            found[cells[0], cells[1]] = dict(zip(COLUMNS, cells[4:], strict=True))
    return found


def line(kind: str, group: str, members: Sequence[Case], columns: dict[str, str]) -> str:
    wants = cell([wanted(case) for case in members])
    cells = [kind, group, str(len(members)), wants, *(columns.get(name, "") for name in COLUMNS)]
    return f"| {' | '.join(cells)} |"


def written(text: str, verdicts: dict[str, dict[Case, str]]) -> str:
    """Return a document with the verdicts of this run in its table."""
    known, groups = rows(text), dict[tuple[str, str], list[Case]]()
    for case in cases():
        if case.group:
            groups.setdefault((case.kind, case.group), []).append(case)
    lines = []
    for (kind, group), members in sorted(groups.items(), key=lambda item: int(item[0][0])):
        columns = known.get((kind, group), {})
        for column, verdict in verdicts.items():
            words = [verdict[case] for case in members if case in verdict]
            if words:
                columns[column] = cell(words)
        for column in CLIENTS:
            columns.setdefault(column, "" if any(case.compared for case in members) else "-")
        lines.append(line(kind, group, members, columns))
    before, _, rest = text.partition("<!-- table: begin -->\n")
    after = rest.partition("<!-- table: end -->")[2]
    names = ("kind", "what the site does", "cases", "has to be", *COLUMNS)
    head = f"| {' | '.join(names)} |\n|{'---|' * len(names)}"
    return "\n".join([before + "<!-- table: begin -->\n", head, *lines, "\n<!-- table: end -->"]) + after


def report(column: str, verdict: dict[Case, str]) -> None:
    """Say what is not as it should be."""
    wrong = [case for case, word in verdict.items() if word != RIGHT]
    sys.stdout.write(f"{column}: {len(verdict) - len(wrong)} of {len(verdict)} as they should be\n")
    for case in wrong if column == "after" else []:
        sys.stdout.write(f"  {case.kind} | {case.group} | {case.name} | {verdict[case]}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--column", choices=["before", "after"], default="after")
    parser.add_argument("--kinds", default="", help="only these, separated by commas")
    parser.add_argument("--clients", default="LCC,curl,wget,Chromium,Scrapy")
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds without progress after which the rest waits"
    )
    options = parser.parse_args()
    kinds, clients = options.kinds.split(","), options.clients.split(",")
    found = cases()
    chosen = [one for one in found if not options.kinds or one.kind in kinds]
    verdicts: dict[str, dict[Case, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        if "LCC" in clients:
            verdicts[options.column] = crawled(chosen, Path(folder), options.patience)
        for client in CLIENTS:
            if client in clients:
                verdicts[client] = asked_by(client, chosen, Path(folder))
    for column in {"before", "after"} & verdicts.keys():
        report(column, verdicts[column])
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), verdicts), encoding="utf-8")


if __name__ == "__main__":
    main()
