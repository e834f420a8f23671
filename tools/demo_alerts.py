# ruff: noqa: INP001 - tools are no package
"""The demo of alerts: 300 real pages are pushed, five change, and each owner is told of what concerns it.

Everything is real: the site is served, its pages are pushed by the provider commands, crawled and annotated.
Mail goes to an SMTP server, webhooks to an HTTP server, signatures are verified, and Atom feeds are read from
``lcc web``. What has to arrive is found by a naive search of the same pages. Nothing leaves this machine, and
nothing is left behind. The documents are those of ``make corpora``.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from shlex import join
from typing import Any

from rich.table import Table

from tests.alert_house import HookServer, hook_server
from tests.alert_story import OWNERS, WATCHED, Story, copy_site, profiles, verdicts
from tests.mail_server import MailServer, mail_server
from tools.demo import (
    BIN,
    PATIENCE,
    PROVIDER,
    DemoFailedError,
    Run,
    free_port,
    lcc_status,
    listening,
    run_command,
    running,
    say,
    web_server,
)

DOCUMENTS = Path(".corpora/postgresql-doc-15/usr/share/doc/postgresql-doc-15/html")
CHANGES = ("anna", "bert", "both", "nobody", "nobody")
"""Whom the sentence concerns that a page gets; the first for nobody goes to the page that is watched."""


def main() -> int:
    """Run the demo; returns 0 when every owner was told of exactly what concerns it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="lcc-demo.") as name:
            demonstrate(Path(name))
    except DemoFailedError as error:
        say.print(f"demo: {error}", style="bold red", markup=False)
        return 1
    except KeyboardInterrupt:
        say.print("\ndemo: interrupted")
        return 130
    say.rule(
        f"[bold green]Each owner exactly what concerns it, once: done in {time.monotonic() - begun:.0f} s"
    )
    return 0


def demonstrate(folder: Path) -> None:
    """Tell the story: what is there, then what changes."""
    if not DOCUMENTS.is_dir():
        raise DemoFailedError(f"{DOCUMENTS} is missing: run `make corpora`, or `make demo-alerts`")
    names = copy_site(DOCUMENTS, folder / "site")
    with ExitStack() as ends:
        mails, hooks = ends.enter_context(mail_server()), ends.enter_context(hook_server())
        root = ends.enter_context(web_server(folder / "site"))
        port, web_port = free_port(), free_port()
        environment = environment_of(folder, port, web_port, mails.port)
        run = partial(run_command, environment=environment, folder=folder)
        say.rule(f"A site of {len(names)} documents at {root}; two owners, three profiles")
        furnish(run, root, hooks.url)
        start(ends, folder, environment, port, web_port)
        story = Story(folder / "site", root)
        told = partial(tell, folder, story, mails, hooks, web_port)
        say.rule("The site pushes everything, once")
        story.begins()
        run(push_line(root, port))
        settle(environment, len(names))
        told()
        say.rule("Five pages change; the site runs the same line again")
        change(story)
        run(push_line(root, port))
        settle(environment, len(names) + len(CHANGES))
        told()


def environment_of(folder: Path, port: int, web_port: int, mail_port: int) -> dict[str, str]:
    """Return the settings of the demo's LCC."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("LCC_")},
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "LCC_DATA_DIR": str(folder / "lcc-data"),
        "LCC_UNS_ENDPOINTS": f"tcp:{port}:interface=127.0.0.1",
        "LCC_WEB_ENDPOINT": f"127.0.0.1:{web_port}",
        "LCC_MAIL_FROM": "Demo <lcc@example.org>",
        "LCC_MAIL_HOST": "127.0.0.1",
        "LCC_MAIL_PORT": str(mail_port),
        "LCC_ALERT_PRIVATE": "yes",
        "LCC_KEEP_VERSIONS": "2",
        "LCC_POLL": "0.5",
        "SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings",
    }


def furnish(run: Run, root: str, hooks: str) -> None:
    """Make an LCC with a provider, profiles, and recipients of either kind for each owner."""
    run("umask 077; echo demo-password > password")
    run("lcc init")
    run(f"lcc provider add {PROVIDER} --password-file password --root {root} --allow-private")
    for words in profiles(root):
        run(join(["lcc", "urd", "add", *words]))
    for owner in OWNERS:
        run(f"lcc recipient add {owner} --mail {owner}@example.org")
        run(f"(umask 077; lcc recipient add {owner} --webhook {hooks}/{owner} > {owner}.secret)")
        run(f"(umask 077; lcc token add {owner} --scope annotate > {owner}.token)")


def start(ends: ExitStack, folder: Path, environment: dict[str, str], port: int, web_port: int) -> None:
    """Start what runs beside each other in an LCC with alerts."""
    commands = {
        "scrapy crawl lcc_push": lambda: listening(port),
        "lcc annotate": lambda: bool(asked("annotate", environment)["coordinator"]),
        "lcc web": lambda: listening(web_port),
    }
    for command, is_ready in commands.items():
        log = folder / f"{command.split()[1]}.log"
        ends.enter_context(running(command, environment, log, is_ready))


def push_line(root: str, port: int) -> str:
    """Return what a site owner runs."""
    return (
        "file2url --find site -name '*.html' \\\n"
        "    | lcccpstate --statefile=state.txt \\\n"
        f"    | lcccp --uns=127.0.0.1:{port} --pid={PROVIDER} --pwd-file=password --urlprefix={root}"
    )


def change(story: Story) -> None:
    """Change five pages, and say whom that concerns."""
    names = iter(story.plain(len(CHANGES)))
    for whom in CHANGES:
        name = WATCHED if whom == "nobody" and WATCHED not in story.changed else next(names)
        story.change(name, whom)
        say.print(f"  {name}: concerns {', '.join(sorted(story.changed[name])) or 'nobody'}", markup=False)


def settle(environment: dict[str, str], seq: int) -> None:
    """Wait until everything was fetched, annotated and told."""
    end = time.monotonic() + PATIENCE
    while not is_settled(environment, seq):
        if time.monotonic() > end:
            raise DemoFailedError(f"not everything was told within {PATIENCE:.0f} seconds")
        time.sleep(0.2)


def is_settled(environment: dict[str, str], seq: int) -> bool:
    """Tell whether the feed has come so far, and nothing waits anywhere."""
    if lcc_status(environment)["seq"] < seq:
        return False
    engine = asked("annotate", environment)
    if engine["waiting"] or engine["behind"] or engine["urds_to_run"]:
        return False
    return not asked("alerts", environment)["waiting"]


def asked(command: str, environment: dict[str, str]) -> dict[str, Any]:
    """Return what the status of a command is."""
    words = [BIN / "lcc", command, "status", "--json"]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


def tell(folder: Path, story: Story, mails: MailServer, hooks: HookServer, web_port: int) -> None:
    """Show what arrived beside what was due; fails when anything is off."""
    secrets, tokens = (
        {owner: (folder / f"{owner}.{kind}").read_text().strip() for owner in OWNERS}
        for kind in ("secret", "token")
    )
    found = verdicts(story, mails, hooks, secrets, port=web_port, tokens=tokens)
    table = Table("owner", "by", "due", "arrived", "twice", "wrong")
    for one in found:
        table.add_row(one.owner, one.way, *map(str, (one.due, one.told, one.repeated, len(one.wrong))))
    say.print(table)
    wrong = [f"{one.owner}, {one.way}: {each}" for one in found for each in one.wrong]
    wrong += [f"{one.owner}, {one.way}: {one.repeated} came twice" for one in found if one.repeated]
    if wrong:
        raise DemoFailedError("; ".join(wrong[:5]))


if __name__ == "__main__":
    sys.exit(main())
