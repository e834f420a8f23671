"""``lcc-push``: one command for the owner of a site, made of file2url, lcccpstate and lcccp."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from lcc_scrapy.push import options as settings
from lcc_scrapy.push import servers
from lcc_scrapy.push.command import Notes, Parser, Status, Stop, run
from lcc_scrapy.push.docroot import DocrootSource
from lcc_scrapy.push.lcccpstate import Wish
from lcc_scrapy.push.one_push import Job, Source, push
from lcc_scrapy.push.options import Asked
from lcc_scrapy.push.plan import Plan
from lcc_scrapy.push.url_list import UrlSource
from lcc_scrapy.wire.messages import Init, SetStart

PROG = "lcc-push"

EXAMPLES = """\
exit status: 0 accepted, or nothing changed · 1 accepted, some URLs refused · 3 set refused · 64 usage
  65 bad input · 66 no such file · 69 cannot connect · 75 try later · 77 login refused

examples:
  lcc-push init https://lcc.example.org/ /srv/www https://www.example.org/   # once: registers the site
  lcc-push                                       # what changed; as cron does
  lcc-push --watch                               # what changes, as it does
  lcc-push --dry-run                             # what would the LCC say?
  lcc-push --server lccs://lcc.example.org:9000 --pid 7 /srv/www https://www.example.org/
  lcc-push --sitemap https://www.example.org/sitemap.xml
  echo https://www.example.org/news.html | lcc-push --urls -
"""


def parser() -> Parser:
    """Return the parser of the command's options."""
    made = Parser(PROG, "Tell an LCC what changed on your site.", EXAMPLES)
    made.usage = "lcc-push [options] [DOCROOT URL]\n       lcc-push init [options] SERVER DOCROOT URL"
    add = made.add_argument
    add("docroot", nargs="?", metavar="DOCROOT", help="the folder that the web server serves")
    add("url", nargs="?", metavar="URL", help="its URL: https://www.example.org/")
    source = made.add_mutually_exclusive_group()
    source.add_argument("--sitemap", metavar="FILE|URL", help="the site is what its sitemap names")
    source.add_argument(
        "--urls", metavar="FILE", help="these URLs changed, one on a line; - = standard input"
    )
    add("--config", metavar="FILE", help="instead of ~/.config/lcc-push.ini")
    add(
        "--server",
        metavar="SERVER",
        help="the LCC: https://HOST/ or lccs://HOST:PORT; in clear: lcc://HOST:PORT",
    )
    add("--pid", metavar="ID", help="the provider's id")
    add("--ca", metavar="FILE", help="certificates to trust instead of the system's")
    add(
        "--state",
        metavar="FILE",
        help="what the names of state files begin with (default: beside the config)",
    )
    add("--full", action="store_true", help="send the whole site; the LCC removes the rest")
    add("--max-removal", metavar="PERCENT", help="refuse if a larger share is gone (default: 50; 100 = any)")
    add("--dry-run", action="store_true", help="ask the LCC what it would do with the set")
    add("--watch", action="store_true", help="keep running, and push what changes")
    add("--interval", metavar="SECONDS", help="with --watch: the longest time between two pushes")
    add(
        "--poll",
        action="store_true",
        help="with --watch: look for changes instead of being told (no inotify)",
    )
    add("--quiet", action="store_true", help="print warnings only")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["init"]:
        from lcc_scrapy.push import init  # noqa: PLC0415 - needed once in the life of a site

        return init.main(words[1:])
    return run(PROG, lambda: _main(parser().parse_args(words)))


def _main(options: Namespace) -> int:
    if options.docroot and options.url is None and "://" in options.docroot:
        options.docroot, options.url = None, options.docroot
    asked = settings.read(options)
    source = source_of(options, asked)
    job = _job(options, asked, source)
    if options.watch:
        from lcc_scrapy.push import watch  # noqa: PLC0415 - not in cron

        notes, interval = Notes(PROG, quiet=options.quiet), watch.interval_of(asked, source)
        return watch.keep_pushing(
            lambda: _once(job, options), lambda: watch.watcher_of(options, source, notes), interval, notes
        )
    return _once(job, options)


def _once(job: Job, options: Namespace) -> Status:
    silent = options.quiet or not sys.stderr.isatty()
    summary = Notes(PROG, quiet=options.quiet) if silent else None
    return push(job, Notes(PROG, quiet=silent), summary=summary)


def source_of(options: Namespace, asked: Asked) -> Source:
    """Return what is to be pushed; raises `Stop` (64)."""
    values = asked.values
    if options.urls:
        if options.full or options.watch or options.docroot:
            raise Stop(Status.USAGE, "--urls names what changed: not with --full, --watch or DOCROOT")
        return UrlSource(options.urls, bool(asked.url))
    if options.sitemap or (values.get("sitemap") and not options.docroot):
        from lcc_scrapy.push import sitemaps  # noqa: PLC0415 - not everybody has one

        if options.docroot:
            raise Stop(Status.USAGE, "either DOCROOT or --sitemap")
        return sitemaps.source_of(values["sitemap"], asked)
    if not values.get("docroot"):
        raise Stop(Status.USAGE, f"nothing to push: give DOCROOT and URL, or name them in {asked.config}")
    if not asked.url:
        raise Stop(Status.USAGE, "which URL has the docroot? lcc-push DOCROOT https://www.example.org/")
    md5 = values.get("md5", "yes")
    if md5 not in {"yes", "no"}:
        raise Stop(Status.USAGE, f"md5 = {md5}: expected yes or no")
    include = tuple(values.get("include", "").split())
    return DocrootSource(values["docroot"], include, values.get("index", ""), md5 == "yes")


def _job(options: Namespace, asked: Asked, source: Source) -> Job:
    server, tls = servers.server_of(asked.server, asked.ca)
    if warning := servers.warning_of(asked.server):
        Notes(PROG).warn(warning)
    start = SetStart(
        full=False, urlprefix="" if source.name == "sitemap" else asked.url, dryrun=options.dry_run
    )
    retries = int(settings.number(asked.values, "retries", 0, least=0, most=1000))
    plan = Plan(server, Init(asked.pid, asked.password), start, tls, asked.seconds("timeout", 300.0), retries)
    removal = settings.number(asked.values, "max_removal", 50.0, least=0, most=100)
    wish = Wish(options.full, removal, source.undated_is_same)
    if not asked.state.parent.is_dir():
        raise Stop(Status.NO_INPUT, f"{asked.state.parent}: no such folder")
    return Job.of(source, plan, asked.state, wish)


if __name__ == "__main__":
    sys.exit(main())
