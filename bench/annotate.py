"""What it takes to compare pages with profiles: CPU a page, time and memory to build and to merge.

python bench/annotate.py                               # 3, 1,000 and 100,000 profiles of 5 keywords
python bench/annotate.py --profiles 3 1000 --pages 5

Pages are those of `make corpora` of about 67 kB, or made up where there are none. Keywords are words of
these pages and of others, and phrases of two words: half of them stand on no page that is measured. The seed
took 200 ms for a page of 70 kB and 3 recipients (002 section 6.2).
"""

import argparse
import random
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from lcc_scrapy.annotation.annotating import Page, Profiles
from lcc_scrapy.annotation.page_text import text_of
from lcc_scrapy.domain.urds import EVERYTHING, Keyword, Urd
from lcc_scrapy.domain.words import words_of

SIZE = range(60_000, 75_000)
KEYWORDS = 5
THRESHOLD = 30
"""Of weights 1 to 5: several words, several times."""

MILLION = 1e6


def pages_of(folder: Path, most: int) -> list[Page]:
    files = [path for path in sorted(folder.rglob("*.html")) if path.stat().st_size in SIZE]
    bodies = [path.read_bytes() for path in files[:most]]
    return [
        Page(f"http://www.example.org/{number}.html", body, "text/html", "")
        for number, body in enumerate(bodies or made_up(most))
    ]


def made_up(count: int) -> Iterator[bytes]:
    """Yield pages of random words, for where there are no real ones."""
    chance = random.Random(1)
    for _ in range(count):
        words = (f"<p>word{chance.randrange(20_000)} <b>and</b> more</p>\n" for _ in range(2000))
        yield b"<title>Made up</title>" + "".join(words).encode()


def vocabulary(pages: list[Page], folder: Path) -> list[str]:
    others = [path.read_bytes() for path in sorted(folder.rglob("*.html"))[:300]]
    texts = [text_of(body, "text/html", "") for body in (*(page.body for page in pages), *others)]
    words = {word for text in texts if text for one in text.paragraphs for word in words_of(one)}
    return sorted(words) + [f"made{number}up" for number in range(len(words))]


def profiles_of(count: int, words: list[str]) -> list[Urd]:
    """Make URDs of words, and of a phrase each; many look for the same words."""
    chance = random.Random(count)
    return [
        Urd(
            number,
            f"owner{number}",
            EVERYTHING,
            threshold=THRESHOLD,
            keywords=tuple(
                Keyword(" ".join(chance.choices(words, k=2 if place == 0 else 1)), place + 1)
                for place in range(KEYWORDS)
            ),
        )
        for number in range(1, count + 1)
    ]


def resident() -> float:
    """Return the megabytes that this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MILLION


def measured(profiles: Profiles, pages: list[Page], repeat: int) -> tuple[float, int]:
    """Return CPU milliseconds a page, the least of some runs, and findings in all."""
    best, found = float("inf"), 0
    for _ in range(repeat):
        begun = time.process_time()
        found = sum(len(profiles.findings(page, (), 0)) for page in pages)
        best = min(best, time.process_time() - begun)
    return 1000 * best / len(pages), found


def while_merging(profiles: Profiles, pages: list[Page]) -> tuple[float, int]:
    """Return the seconds that making one index of all takes in a thread, and the pages compared meanwhile."""
    begun = time.perf_counter()
    thread = threading.Thread(target=profiles.merge)
    thread.start()
    compared = 0
    while thread.is_alive():
        profiles.findings(pages[compared % len(pages)], (), 0)
        compared += 1
    thread.join()
    return time.perf_counter() - begun, compared


def run(count: int, pages: list[Page], words: list[str], repeat: int) -> None:
    before = resident()
    urds = profiles_of(count, words)
    with_urds = resident()
    begun = time.process_time()
    profiles = Profiles(urds)
    built = time.process_time() - begun
    after = resident()
    del urds
    spent, found = measured(profiles, pages, repeat)
    begun = time.process_time()
    profiles.change([profiles_of(1, words)[0]])
    changed = time.process_time() - begun
    merged, compared = while_merging(profiles, pages)
    print(
        f"{count:>9,} profiles: {spent:6.2f} ms CPU a page, {found / len(pages):8.1f} findings a page;"
        f" built in {built:.2f} s CPU, {after - before:.0f} MB ({with_urds - before:.0f} of URDs);"
        f" one change {1000 * changed:.1f} ms; merged in {merged:.2f} s, {compared} pages compared meanwhile,"
        f" then {resident() - before:.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profiles", nargs="+", type=int, default=[3, 1000, 100_000], metavar="N")
    parser.add_argument("--pages", type=int, default=20, help="pages to compare (20)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the best counts (3)")
    parser.add_argument("--folder", type=Path, default=Path(".corpora"))
    given = parser.parse_args()
    pages = pages_of(given.folder, given.pages)
    words = vocabulary(pages, given.folder)
    size = sum(len(page.body) for page in pages) / len(pages)
    begun = time.process_time()
    for page in pages:
        text_of(page.body, page.mimetype, page.charset)
    text = 1000 * (time.process_time() - begun) / len(pages)
    print(f"{len(pages)} pages of {size / 1000:.1f} kB; their text takes {text:.2f} ms; {len(words):,} words")
    for count in given.profiles:
        run(count, pages, words, given.repeat)


if __name__ == "__main__":
    main()
