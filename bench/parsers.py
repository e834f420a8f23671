"""What reading foreign input costs at most: for each parser its worst dimension, by CPU and by memory.

python bench/parsers.py [--times 1] [--parser html_links …] [--markdown FILE]

The inputs are those of tests/faults/test_growth.py and test_growth_hostile.py, ``--times`` as large. CPU is
that of the process, so other programs do not count.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults import growth_annotation, growth_lists, growth_providers, growth_sites, growth_users
from tests.faults.growth import Finding, Parser, measure

PARSERS = tuple(
    parser
    for module in (growth_sites, growth_lists, growth_providers, growth_users, growth_annotation)
    for parser in module.PARSERS
)
HEAD = "| parser | runs in | bytes at most | dimensions | bytes measured | worst of them | CPU ms | peak MB |"


def row(parser: Parser, found: list[Finding]) -> str:
    """Return the table row of a parser."""
    worst = max(found, key=lambda one: one.cost.cpu)
    peak = max(one.cost.memory for one in found)
    bound = f"{parser.bound:,}" if parser.bound < 1 << 40 else "any, read in pieces"
    return (
        f"| {parser.name} | {parser.where} | {bound} | {len(found)} | {worst.size:,} | {worst.dimension}"
        f" | {worst.cost.cpu * 1e3:.1f} | {peak / 1e6:.1f} |"
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--times", type=int, default=1, help="how much larger the inputs are than in a test")
    options.add_argument("--parser", action="append", choices=[parser.name for parser in PARSERS])
    options.add_argument("--markdown", type=Path, help="append the table to FILE")
    given = options.parse_args()
    lines = [HEAD, "|---" * HEAD.count("| ") + "|"]
    for parser in PARSERS:
        if given.parser is None or parser.name in given.parser:
            found = [measure(parser, dimension, given.times) for dimension in parser.dimensions]
            lines.append(row(parser, found))
            print(lines[-1], *(f"  WRONG {one}" for one in found if one.wrong), sep="\n", flush=True)
    if given.markdown:
        with given.markdown.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
