"""A command without what it does not need: packages of an extra, other systems of the LCC."""

import subprocess
import sys

import pytest

from lcc_scrapy.cli.web import needs_web
from lcc_scrapy.domain.errors import MissingExtra


def test_a_package_of_the_extra_that_is_missing_is_told_with_the_extra() -> None:
    with (
        pytest.raises(MissingExtra, match=r"what `lcc web` needs .*: install lcc-scrapy\[web\]"),
        needs_web("lcc web"),
    ):
        raise ModuleNotFoundError("No module named 'starlette.routing'", name="starlette.routing")


@pytest.mark.parametrize(
    "error",
    [
        ImportError("cannot import name 'x' from 'fastapi'"),
        ModuleNotFoundError("No module named 'titles'", name="titles"),
    ],
)
def test_an_import_that_fails_for_another_reason_is_told_as_it_is(error: ImportError) -> None:
    with pytest.raises(type(error)) as raised, needs_web("lcc web"):
        raise error
    assert raised.value is error


def test_alarms_need_no_annotation() -> None:
    program = (
        "import sys, lcc_scrapy.apps.alarms.commands, lcc_scrapy.apps.alarms.facts, lcc_scrapy.apps.alarms.watching, lcc_scrapy.db.parts;"
        "print([name for name in sys.modules if name.startswith('lcc_scrapy.annotation')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
