"""Every pair of bytes in every state of a decoder, as browsers decode it; however it arrives, it is the same."""

from itertools import product

import pytest

from lcc_scrapy.content.charsets import decoded, decoder
from tests.unit.test_content_charsets import CHROMIUM, DECODED, alone, digest, inputs

pytestmark = pytest.mark.soak


def in_single_bytes(data: bytes, encoding: str) -> str:
    text = decoder(encoding)
    return "".join([*(text.decode(bytes((byte,))) for byte in data), text.decode(b"", True)])


@pytest.mark.parametrize(("encoding", "prefix"), DECODED)
@pytest.mark.parametrize("decode", [alone, in_single_bytes])
def test_all_bytes_are_decoded_as_by_browsers(decode, encoding, prefix):
    found = digest(decode(data, encoding) for data in inputs(encoding, prefix))
    assert found == CHROMIUM["decoded"][encoding][prefix]


def test_four_bytes_of_gb18030_are_decoded_as_by_browsers():
    ranges = (range(0x81, 0xFF), range(0x30, 0x3A), range(0x81, 0xFF), range(0x30, 0x3A))
    text = decoded(b"".join(map(bytes, product(*ranges))), "gb18030")
    assert digest(iter([text])) == CHROMIUM["gb18030 of four bytes"]
