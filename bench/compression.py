"""What compression of content files gains and costs on real documents.

python bench/compression.py              # the documents of `make corpora`
python bench/compression.py /usr/share/doc

Bodies are given to the encoders in pieces, as they come from the network.
"""

import sys
import time
from pathlib import Path

from lcc_scrapy.content.stored import encoder

CORPUS = Path(__file__).parents[1] / ".corpora/python3.11-doc/usr/share/doc/python3.11/html"
PIECE = 65536


def measure(coding, bodies):
    begun, size, longest = time.process_time(), 0, 0.0
    for body in bodies:
        made = encoder(coding)
        for start in range(0, len(body), PIECE):
            before = time.process_time()
            size += len(made.compress(body[start : start + PIECE]))
            longest = max(longest, time.process_time() - before)
        size += len(made.flush())
    return size, time.process_time() - begun, longest


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS
    bodies = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    whole = sum(map(len, bodies))
    print(f"{len(bodies)} files, {whole / 1e6:.1f} MB")
    for coding in ("gzip", "zstd"):
        size, took, longest = measure(coding, bodies)
        print(
            f"{coding}: {size / 1e6:.1f} MB ({size / whole:.0%}), {took:.2f} s of one processor,"
            f" {whole / took / 1e6:.0f} MB/s, longest piece {longest * 1000:.1f} ms"
        )


if __name__ == "__main__":
    main()
