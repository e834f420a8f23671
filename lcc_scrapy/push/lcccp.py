"""``lcccp``: send the URLs on standard input to an LCC (seed 000; seed 003 sections 4 and 13)."""

from __future__ import annotations

import ssl
import sys
import tempfile
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from lcc_scrapy.push import password, report
from lcc_scrapy.push.client import Address
from lcc_scrapy.push.command import Notes, Parser, Status, Stop, run
from lcc_scrapy.push.delivery import Delivery, Outcome
from lcc_scrapy.push.ledger import Ledger
from lcc_scrapy.push.plan import Plan
from lcc_scrapy.push.quota import OverQuota
from lcc_scrapy.push.state import Damaged, StateFile
from lcc_scrapy.push.submission import Submission
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import Init, InitAccepted, SetAccepted, SetStart

PROG = "lcccp"
_PREFIX_ENDS = ("/", "?", "=", "&")
"""How a prefix ends that something may stand directly behind."""

EXAMPLES = """\
exit status: 0 accepted · 1 accepted, some URLs refused · 3 set refused · 64 usage
  65 bad or incomplete input · 69 cannot connect · 75 try later · 77 login refused

examples:
  … | lcccp --uns=lcc.example.net:9000 --pid=7 --pwd-file=lcc.pwd --urlprefix=http://www.example.org/
  echo '<url curl="news.html" mimetype="text/html"/>' | lcccp --uns=… --pid=… --pwd-file=… --urlprefix=…
  lcccp --uns=lcc.example.net --tls --pid=7 --pwd-file=lcc.pwd --check
  … | lcccp --pid=7 --urlprefix=http://www.example.org/ --print
"""


def parser() -> Parser:
    """Return the parser of the command's options."""
    made = Parser(PROG, "Send the <url …/> lines on standard input to an LCC.", EXAMPLES)
    _add_connection(made)
    _add_set(made)
    _add_mode(made)
    return made


def _add_connection(made: Parser) -> None:
    add = made.add_argument_group("connection").add_argument
    add("--uns", metavar="HOST[:PORT]", type=_address, help="the LCC's update notification server; port 9000")
    add("--pid", metavar="ID", default="", help="the provider's id")
    add(password.OPTION, metavar="PASSWORD", help="the password; --pwd-file or $LCC_PWD are safer")
    add("--pwd-file", metavar="FILE", type=Path, help="a file whose first line is the password")
    add("--tls", action="store_true", help="encrypt, and verify the server's certificate")
    add("--ca", metavar="FILE", help="certificates to trust instead of the system's (with --tls)")
    add("--insecure", action="store_true", help="do not verify the certificate (with --tls)")
    add("--timeout", metavar="SECONDS", type=_seconds, default=300.0, help="longest wait (default: 300)")
    add(
        "--retries",
        metavar="N",
        type=_number,
        default=0,
        help="try again N times when the LCC says to try later",
    )


def _add_set(made: Parser) -> None:
    group = made.add_argument_group("set")
    add = group.add_argument
    add("--urlprefix", metavar="URL", default="", help="prefix of every URL without scheme://")
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        "--full", action="store_true", help="the input is the whole site: the LCC removes the rest"
    )
    kind.add_argument("--partial", action="store_true", help="the input is what changed (default)")
    add("--set-id", metavar="ID", default="", help="name of the set; the LCC recognises a resend by it")
    add("--ifabsent", action="store_true", help="fetch only what the LCC does not have")
    add("--drop-outside", action="store_true", help="drop URLs outside the provider's roots without error")
    add(
        "--timeofday",
        metavar="MASK",
        default="",
        help="hours of fetching, for URLs without their own",
    )
    add(
        "--over-quota",
        type=OverQuota,
        choices=list(OverQuota),
        default=OverQuota.WARN,
        metavar="|".join(OverQuota),
        help="what to do with a set that does not fit (default: warn)",
    )


def _add_mode(made: Parser) -> None:
    group = made.add_argument_group("mode and output")
    mode = group.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="log in, show quota and errors, send nothing")
    mode.add_argument("--dry-run", action="store_true", help="ask the LCC what it would do with the set")
    mode.add_argument("--print", action="store_true", help="write the XML to stdout and do not connect")
    add = group.add_argument
    add("--no-commit", action="store_true", help="do not commit the state of lcccpstate")
    add("--json", action="store_true", help="print the result as one JSON object")
    add(
        "--max-errors-shown",
        metavar="N",
        type=_number,
        default=20,
        help="print N errors at most (default: 20)",
    )
    add("--quiet", action="store_true", help="print warnings only")
    add("--verbose", action="store_true", help="print quota and login, too")


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not HOST, HOST:PORT or [V6]:PORT") from None


def _number(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ArgumentTypeError("must not be negative")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:  # noqa: PLR2004 - about eleven days
        raise ArgumentTypeError("must be more than zero")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    if argv is None:
        password.hide_from_process_list()
    return run(PROG, lambda: _main(parser().parse_args(argv)))


def _main(options: Namespace) -> int:
    notes = Notes(PROG, quiet=options.quiet, verbose=options.verbose)
    with tempfile.TemporaryFile() as spool, ExitStack() as held:
        submission = Submission(spool, options.timeofday)
        if options.check:
            return _check(options, submission, notes)
        if not options.print:
            _require_connection(options)
        submission.read(sys.stdin.buffer, notes.progress())
        _warn_of_prefix(options.urlprefix, submission.relative, notes)
        full = _kind(options, submission)
        if options.print:
            return _print(options, submission, full=full)
        try:
            ledger = _ledger(options, submission, held)
            ledger.check_bound_to(options.pid, options.urlprefix)
            return _deliver(_plan(options, notes, full=full), options, submission, ledger, notes)
        except Damaged as error:
            raise Stop(Status.BAD_INPUT, f"the state file cannot be used: {error}") from None


def _require_connection(options: Namespace) -> None:
    for name in ("uns", "pid"):
        if not getattr(options, name):
            raise Stop(Status.USAGE, f"--{name} is required")


def _warn_of_prefix(prefix: str, relative: str, notes: Notes) -> None:
    if prefix and relative and not prefix.endswith(_PREFIX_ENDS) and not relative.startswith(("/", "?")):
        notes.warn(f"--urlprefix has no slash at its end: the first URL is {prefix + relative}")


def _kind(options: Namespace, submission: Submission) -> bool:
    """Decide whether the set is full; raises `Stop` (65) when the input cannot be such a set."""
    handed = submission.hand_over
    full = handed.full if handed else bool(options.full)
    urls = submission.count(full=full)
    if handed and (options.partial if full else options.full):
        raise Stop(
            Status.BAD_INPUT, "lcccpstate decides the kind of set: use lcccpstate --full; nothing sent"
        )
    if handed and submission.cut:
        raise Stop(
            Status.BAD_INPUT, f"input not complete ({submission.fault}): lcccpstate failed; nothing sent"
        )
    if full and submission.fault:
        raise Stop(Status.BAD_INPUT, f"input not complete ({submission.fault}): no full set; nothing sent")
    if full and not urls and not handed:
        raise Stop(Status.BAD_INPUT, "a full set without URLs would remove everything; nothing sent")
    if submission.fault and not urls:
        raise Stop(Status.BAD_INPUT, f"input not complete ({submission.fault}); nothing sent")
    return full


def _print(options: Namespace, submission: Submission, *, full: bool) -> int:
    out = sys.stdout.buffer
    out.write(writing.init(Init(options.pid, "***")))
    out.write(writing.set_start(_start(options, full=full)))
    for item in submission.items(full=full):
        out.write(item.xml)
    out.write(writing.set_end())
    out.flush()
    return Status.DONE


def _start(options: Namespace, *, full: bool) -> SetStart:
    return SetStart(
        full=full,
        urlprefix=options.urlprefix,
        set_id=options.set_id,
        ifabsent=options.ifabsent,
        drop_outside=options.drop_outside,
        dryrun=options.dry_run,
    )


def _ledger(options: Namespace, submission: Submission, held: ExitStack) -> Ledger:
    if submission.hand_over is None or options.no_commit:
        return Ledger()
    state = StateFile(Path(submission.hand_over.state))
    if not state.path.parent.is_dir():
        raise Stop(
            Status.BAD_INPUT, f"{state.path.parent}: no such folder here; see --no-commit; nothing sent"
        )
    held.enter_context(state.locked())
    return Ledger.open(state, submission.hand_over.set_id)


def _plan(options: Namespace, notes: Notes, *, full: bool) -> Plan:
    return Plan(
        address=options.uns,
        login=Init(options.pid, password.password(options.pwd, options.pwd_file, notes)),
        start=_start(options, full=full),
        tls=_tls(options),
        timeout=options.timeout,
        retries=options.retries,
        over_quota=options.over_quota,
        errors_kept=options.max_errors_shown,
    )


def _tls(options: Namespace) -> ssl.SSLContext | None:
    if not options.tls:
        if options.ca or options.insecure:
            raise Stop(Status.USAGE, "--ca and --insecure need --tls")
        return None
    try:
        context = ssl.create_default_context(cafile=options.ca)
    except OSError as error:
        raise Stop(Status.NO_INPUT, f"{options.ca}: {error.strerror or 'no certificates in it'}") from None
    if options.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _check(options: Namespace, nothing: Submission, notes: Notes) -> int:
    _require_connection(options)
    outcome = Delivery(_plan(options, notes, full=False), nothing, Ledger(), notes).run()
    if options.json:
        print(report.as_json(outcome))
    elif isinstance(outcome.login, InitAccepted):
        report.print_check(outcome.login, options.max_errors_shown)
    if outcome.text:
        notes.warn(outcome.text)
    return outcome.status


def _deliver(plan: Plan, options: Namespace, submission: Submission, ledger: Ledger, notes: Notes) -> int:
    outcome = Delivery(plan, submission, ledger, notes).run()
    incomplete = _withheld(submission, notes)
    if incomplete and outcome.status in {Status.DONE, Status.URL_ERRORS}:
        outcome = replace(outcome, status=Status.BAD_INPUT)
    report.tell(outcome, notes, options.max_errors_shown)
    _tell_full_set_request(outcome, submission, notes, full=plan.start.full)
    if options.json:
        print(report.as_json(outcome))
    elif options.dry_run and isinstance(outcome.verdict, SetAccepted):
        report.print_dry_run(outcome.verdict)
    return outcome.status


def _withheld(submission: Submission, notes: Notes) -> bool:
    """Say what an incomplete input means; True when its sender says so, or it lost lines on the way."""
    if not submission.fault:
        return False
    if not submission.removals:
        what = "updates only"
    elif submission.removals_count:
        what = "nothing is removed but what it names"
    else:
        what = f"updates only; {submission.removals:,} removals are not sent"
    notes.warn(f"input not complete ({submission.fault}): {what}")
    return submission.ended


def _tell_full_set_request(outcome: Outcome, submission: Submission, notes: Notes, *, full: bool) -> None:
    wanted = report.full_set_wanted(outcome)
    if full or not wanted:
        return
    how = "the next run sends it" if submission.hand_over else "run once with the whole site and --full"
    notes.warn(f"the LCC wants a full set ({wanted}): {how}")


if __name__ == "__main__":
    sys.exit(main())
