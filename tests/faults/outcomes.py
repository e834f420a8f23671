"""``docs/faults.md``: what was seen of every trouble of the machine."""

import os
from dataclasses import astuple, dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "faults.md"
HEAD = "| trouble | a provider that pushes is told | what is fetched meanwhile | what was accepted | the process |"


@dataclass(frozen=True)
class Seen:
    """What came of a trouble; ``seconds`` from the end of its cause until all goes on."""

    told: str
    meanwhile: str
    kept: str
    process: str


def rows() -> dict[str, tuple[list[str], str]]:
    """Return the table: by trouble its columns, and the last one, of times."""
    found = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and not line.startswith(HEAD):
            found[cells[0]] = (cells[1:-1], cells[-1])
    return found


def is_as_documented(trouble: str, seen: Seen, seconds: float) -> None:
    """Compare with the document; ``LCC_WRITE_DOCS=1`` writes it instead, times too."""
    print(f"{trouble}: all goes on after {seconds:.1f} s")
    columns = [str(value) for value in astuple(seen)]
    if os.environ.get("LCC_WRITE_DOCS"):
        _write(trouble, columns, f"{seconds:.0f} s")
    assert rows()[trouble][0] == columns, "LCC_WRITE_DOCS=1 renews it"


def _write(trouble: str, columns: list[str], took: str) -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    line = f"| {' | '.join([trouble, *columns, took])} |"
    at = next((number for number, one in enumerate(lines) if one.startswith(f"| {trouble} | ")), None)
    if at is None:
        last = max(number for number, one in enumerate(lines) if one.startswith("|"))
        lines.insert(last + 1, line)
    else:
        lines[at] = line
    DOCUMENT.write_text("\n".join(lines) + "\n", encoding="utf-8")
