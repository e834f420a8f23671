"""Coverage-guided fuzzing of one target: ``python -m tests.fuzz.run codec -max_total_time=60``.

Needs the extra ``fuzz`` (atheris). Options are those of libFuzzer. The corpus stays in ``.fuzz/TARGET``;
a crash leaves its input in ``.fuzz/crash-…``: give that file's name instead of options to see it again,
and make a test of it.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["lcc_scrapy"]):
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS

HOME = Path(__file__).parents[2] / ".fuzz"


def main() -> None:
    name, *options = sys.argv[1:]
    corpus = HOME / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(seed)
    once = [option for option in options if not option.startswith("-")]
    folders = [] if once else [str(corpus)]
    atheris.Setup(
        [sys.argv[0], f"-artifact_prefix={HOME}/", "-max_len=20000", *options, *folders], TARGETS[name]
    )
    atheris.Fuzz()


main()
