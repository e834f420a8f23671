# ruff: noqa: INP001 - tools are no package
"""Break one line of the package after the other, and see whether the tests of its module notice.

Every mutant runs in a process of its own, forked from one that has imported everything already. There its
functions get other code: no file is changed, and what is outside of functions is not mutated. What survives
is printed as ``file:line: function: what``. Mutants that behave as the original are listed, with the reason,
in ``tools/mutant_tests.py``.

With ``--nearest``, a mutant gets only the tests that reach its function, the shortest first. Which ones these
are is noted while the tests run without any mutant. It is much quicker, but a function whose result is kept
between tests (``lru_cache``, a fixture of a module) counts as reached by the first of them only.
"""

import argparse
import ast
import gc
import multiprocessing
import os
import pickle
import random
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType

import hypothesis
import pytest
from mutant_tests import EQUIVALENT, TESTS

ROOT = Path(__file__).parents[1]
SEED = 1
MEMORY = 4 << 30
"""Bytes that a mutant may take; those that grow without end are killed by it."""

CPU_FACTOR, CPU_LEAST = 4, 20
"""Seconds of CPU that a mutant may take: so many times what the tests take without one, and so many more."""

OPTIONS = (
    "-q",
    "--no-header",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    "--hypothesis-profile=mutants",
    "--timeout=60",  # some wait for ever, and take no CPU for that
    "-Wignore::pytest.PytestAssertRewriteWarning",  # the libraries were read before
)

PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
)
SWAPS = dict([*PAIRS, *((second, first) for first, second in PAIRS)])
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
REACHED = "__reached__"
ELSEWHERE = ("annotation", "returns", "decorator_list", "args")
"""Fields of the syntax tree that do nothing when a function runs: types, and what its ``def`` does."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module: ``holder``'s field is to be ``new``; ``index`` if the field is a list.

    ``function``: the line where its function begins.
    """

    module: str
    line: int
    function: int
    name: str
    holder: ast.AST
    field: str
    index: int | None
    new: ast.AST

    def put(self) -> None:
        """Change the tree, for good."""
        if self.index is None:
            setattr(self.holder, self.field, self.new)
        else:
            getattr(self.holder, self.field)[self.index] = self.new

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.name}"


def main() -> int:
    """Run the mutants of the modules that were asked for; returns 1 if their tests fail without any."""
    options = parsed()
    os.chdir(ROOT)
    phases = (
        hypothesis.Phase.explicit,
        hypothesis.Phase.generate,
    )  # to fail is enough: nothing is made smaller
    hypothesis.settings.register_profile("mutants", derandomize=True, deadline=None, phases=phases)
    modules = options.modules or list(TESTS)
    run = partial(survivors_of, options=options)
    rows = []
    for module in modules:
        with multiprocessing.get_context("fork").Pool(1) as pool:  # pytest runs once a process
            total, survivors = pool.apply(run, (module,))
        if survivors is None:
            print(f"{module}: its tests fail without any mutant", file=sys.stderr)  # noqa: T201
            return 1
        print(*(f"{line}\n" for line in survivors), sep="", end="", flush=True)  # noqa: T201
        rows.append((module, total - len(survivors), total))
    for module, killed, total in [
        *rows,
        ("together", sum(row[1] for row in rows), sum(row[2] for row in rows)),
    ]:
        print(f"{module:40} {killed:5} of {total:5} killed {killed / max(1, total):6.1%}")  # noqa: T201
    return 0


def survivors_of(module: str, options: argparse.Namespace) -> tuple[int, list[str] | None]:
    """Return how many mutants of a module there are, and which survived; None if the tests fail anyway."""
    source = (ROOT / module).read_text()
    tree = ast.parse(source)
    mutants = list(mutants_of(module, tree))
    told_of_unknown(module, mutants)
    if options.sample and len(mutants) > options.sample:
        mutants = random.Random(SEED).sample(mutants, options.sample)  # noqa: S311
    mutants = [one for one in mutants if one.name not in EQUIVALENT.get(module, {})]
    if options.again:
        before = set(options.again.read_text().splitlines())
        mutants = [one for one in mutants if str(one) in before]
    breaker = Breaker(module, source, tree, mutants, jobs=options.jobs, nearest=options.nearest)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    pytest.main([*OPTIONS, *(options.tests or TESTS[module])], plugins=[breaker])
    return len(mutants), None if breaker.survivors is None else [str(one) for one in breaker.survivors]


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Break the code, one line at a time, and see whether tests notice."
    )
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="such as lcc_scrapy/domain/turns.py; default: all"
    )
    parser.add_argument(
        "--sample", type=int, default=0, help="at most so many mutants of each, always the same"
    )
    parser.add_argument(
        "--nearest",
        action="store_true",
        help="only the tests that reach the changed function, shortest first",
    )
    parser.add_argument(
        "--tests", nargs="+", metavar="FILE", help="these tests, and not those that the table names"
    )
    parser.add_argument(
        "--again",
        type=Path,
        metavar="FILE",
        help="only what survived before: lines that this command printed",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time (%(default)s)")
    options = parser.parse_args()
    unknown = [module for module in options.modules if module not in TESTS]
    if unknown and not options.tests:
        parser.error(
            f"no tests are named for {', '.join(unknown)}: use --tests, or add them to mutant_tests.py"
        )
    return options


def told_of_unknown(module: str, mutants: Sequence[Mutant]) -> None:
    """Tell of mutants that are listed as equivalent, and that there are none of any more."""
    for name in EQUIVALENT.get(module, {}).keys() - {one.name for one in mutants}:
        print(f"there is no such mutant in {module}: {name}", file=sys.stderr)  # noqa: T201


# --- which mutants there are -------------------------------------------------------------------------


def mutants_of(
    module: str, node: ast.AST, function: ast.FunctionDef | None = None, line: int = 1
) -> Iterator[Mutant]:
    """Make all mutants of a tree, in the order of its lines."""
    for field, value in ast.iter_fields(node):
        if field in ELSEWHERE and not isinstance(node, ast.Call):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST):
                continue
            inside = child if isinstance(child, ast.FunctionDef) else function
            at = getattr(child, "lineno", line)
            if inside is not None:
                for new, what in changes(node, field, child):
                    yield Mutant(module, at, inside.lineno, f"{inside.name}: {what}", node, field, index, new)
            yield from mutants_of(module, child, inside, at)


def changes(parent: ast.AST, field: str, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Make what may stand in the place of a node, each with a text that says so."""
    if new := SWAPS.get(type(node)):
        yield new(), f"{short(parent)}: {type(node).__name__} -> {new.__name__}"
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield from other_numbers(parent, node.value)
    if field == "func" and isinstance(node, ast.Name) and node.id in OPPOSITES:
        yield ast.Name(OPPOSITES[node.id], ast.Load()), f"{short(parent)}: {node.id} -> {OPPOSITES[node.id]}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand, f"{short(node)}: without not"
    if isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
        yield ast.Return(ast.Constant(None)), f"{short(node)} -> return None"
    if is_effect(node):
        yield ast.Pass(), f"deleted: {short(node)}"
    yield from other_conditions(parent, field, node)


def other_numbers(parent: ast.AST, value: bool | float) -> Iterator[tuple[ast.AST, str]]:
    """Make the other one of 0 and 1, and a whole number that is one larger than any other."""
    if value in {0, 1}:
        other = type(value)(not value)
        yield ast.Constant(other), f"{short(parent)}: {value} -> {other}"
    elif type(value) is int:
        yield ast.Constant(value + 1), f"{short(parent)}: {value} -> {value + 1}"


def other_conditions(parent: ast.AST, field: str, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Make conditions that always or never hold, or that lack one of their parts."""
    if field == "test" and isinstance(parent, ast.If | ast.IfExp):
        for constant in (True, False):
            yield ast.Constant(constant), f"if {short(node)} -> if {constant}"
    if field == "ifs":
        yield ast.Constant(value=True), f"[... if {short(node)}] -> all"
    for left_out in node.values if isinstance(node, ast.BoolOp) else ():
        rest: list[ast.expr] = [one for one in node.values if one is not left_out]
        alone = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield alone, f"{short(node)}: without {short(left_out)}"


def is_effect(node: ast.AST) -> bool:
    """Tell whether a statement may be left out: not if names that it sets would be missing, nor the log."""
    if isinstance(node, ast.Raise | ast.Delete | ast.Continue | ast.Break):
        return True
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and not ast.unparse(node).startswith("_log.")
    if isinstance(node, ast.AugAssign):
        return True
    kept = ast.Attribute | ast.Tuple | ast.Subscript
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], kept)


def short(node: ast.AST) -> str:
    """Return the beginning of a piece of code, on one line."""
    return " ".join(ast.unparse(node).split())[:70]


# --- running them ------------------------------------------------------------------------------------


class Breaker:
    """A plugin of pytest: runs the tests once with the code as it is, then for each mutant, in forks."""

    def __init__(
        self,
        module: str,
        source: str,
        tree: ast.Module,
        mutants: Sequence[Mutant],
        *,
        jobs: int,
        nearest: bool,
    ) -> None:
        self._path = str(ROOT / module)
        self._source = source
        self._tree = tree
        self._mutants = mutants
        self._jobs = jobs
        self._nearest = nearest
        self._seconds = CPU_LEAST
        self._functions: list[FunctionType] = []
        self.survivors: list[Mutant] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Leave ``survivors`` as None if the tests fail without any mutant."""
        self._functions = functions_in(self._path)
        gc.collect()
        gc.freeze()  # the forks share what there is
        reading, writing = os.pipe()
        child = self._start(session.items, session, None, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as told:
            reached = told.read()
        _, status, used = os.wait4(child, 0)
        if status == 0:
            self._seconds += int(CPU_FACTOR * used.ru_utime)
            self.survivors = self._run_all(session, pickle.loads(reached))  # noqa: S301 - of our own fork
        return True

    def _run_all(self, session: pytest.Session, reached: Mapping[int, Sequence[int]]) -> list[Mutant]:
        """Run so many mutants at a time; returns those that the tests did not notice."""
        running: dict[int, Mutant] = {}
        survivors = []
        for mutant in [*self._mutants, *[None] * self._jobs]:
            if running and (mutant is None or len(running) == self._jobs):
                child, status = os.wait()
                ended = running.pop(child)
                survivors += [ended] * (status == 0)
            if mutant is not None:
                nearest = [session.items[index] for index in reached.get(mutant.function, ())]
                items = nearest if self._nearest else session.items
                running[self._start(items, session, mutant)] = mutant
        return sorted(survivors, key=lambda one: one.line)

    def _start(
        self, items: Sequence[pytest.Item], session: pytest.Session, mutant: Mutant | None, told: int = -1
    ) -> int:
        """Run tests on a mutant in a process that ends with 0 if they pass; returns its number.

        Without a mutant, it tells which tests reach which function.
        """
        if child := os.fork():
            return child
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if mutant is None:
                os._exit(self._note_reached(session, told))
            resource.setrlimit(resource.RLIMIT_CPU, (self._seconds, self._seconds))
            mutant.put()
            self._replace_functions(self._tree)
            os._exit(fails(session, items))
        finally:
            os._exit(70)

    def _note_reached(self, session: pytest.Session, told: int) -> bool:
        """Run all tests; tells the indices of those that reach each function, the shortest first."""
        reached: set[int] = set()
        self._replace_functions(noting(ast.parse(self._source)))
        for function in self._functions:
            function.__globals__[REACHED] = reached.add
        seconds: dict[int, float] = {}
        by_function: dict[int, list[int]] = {}
        for index, (item, following) in enumerate(in_order(session.items)):
            reached.clear()
            began = time.perf_counter()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[index] = time.perf_counter() - began
            for line in reached:
                by_function.setdefault(line, []).append(index)
        nearest = {key: sorted(found, key=seconds.__getitem__) for key, found in by_function.items()}
        with os.fdopen(told, "wb") as out:
            pickle.dump(nearest, out)
        return bool(session.testsfailed)

    def _replace_functions(self, tree: ast.Module) -> None:
        """Give the functions of a file that was imported already the code of a tree."""
        codes = dict(codes_of(compile(ast.fix_missing_locations(tree), self._path, "exec")))
        for function in self._functions:
            old = function.__code__
            function.__code__ = codes[old.co_qualname, old.co_firstlineno]


def in_order(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Pair each test with the one that follows."""
    return zip(items, [*items[1:], None], strict=True)


def fails(session: pytest.Session, items: Sequence[pytest.Item]) -> bool:
    """Run tests up to the first that fails; once in a process."""
    for item, following in in_order(items):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return True
    return False


def functions_in(path: str) -> list[FunctionType]:
    """Return the functions of a file that was imported."""
    return [
        one for one in gc.get_objects() if isinstance(one, FunctionType) and one.__code__.co_filename == path
    ]


def noting(tree: ast.Module) -> ast.Module:
    """Let every function of a tree begin with noting that it was reached, by its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            call = ast.Call(ast.Name(REACHED, ast.Load()), [ast.Constant(node.lineno)], [])
            node.body.insert(0, ast.copy_location(ast.Expr(call), node.body[0]))
    return tree


def codes_of(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Return all code inside a piece of code, by its name and first line."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield (inner.co_qualname, inner.co_firstlineno), inner
            yield from codes_of(inner)


if __name__ == "__main__":
    sys.exit(main())
