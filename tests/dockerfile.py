"""What a Dockerfile says: as much of its grammar as ours needs."""

import json
import shlex
from pathlib import Path

FILE = Path(__file__).parents[1] / "contrib/compose/Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """Return every instruction with what follows it, continued lines in one."""
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in whole) if name]


def all_of(name: str) -> list[str]:
    """Return what follows each instruction of a name, in all stages."""
    return [rest for one, rest in instructions() if one == name]


def environment() -> dict[str, str]:
    """Return what ENV sets."""
    return dict(word.split("=", 1) for rest in all_of("ENV") for word in shlex.split(rest))


def health_check() -> list[str]:
    """Return the command of HEALTHCHECK."""
    (rest,) = all_of("HEALTHCHECK")
    return list(json.loads(rest.partition("CMD ")[2]))
