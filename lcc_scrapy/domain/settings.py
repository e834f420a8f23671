"""How a setting is declared: once, as a field of the class in which the code that needs it gets it.

::

    @dataclass(frozen=True, slots=True)
    class Limits:
        rate: int = setting("LCC_MIN_RATE", "500", read.size, "Bytes per second of a set.", LIVE)

The parser, the class's own default and the page of settings come from this one line. ``config.Config`` holds
all such classes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

T = TypeVar("T")

LIVE = True
_SETTING, _GROUP = "setting", "group"


@dataclass(frozen=True, slots=True)
class Setting:
    """One ``LCC_*`` setting: its default as it would be written, how it is read, what it means."""

    name: str
    default: str
    read: Callable[[Any], Any]
    """Makes its value of what was written; ``ValueError`` says what was expected."""
    meaning: str
    live: bool = False
    """A change takes effect on SIGHUP; that of others at the next start."""


def setting(name: str, default: str, read: Callable[[Any], T], meaning: str, live: bool = False) -> T:
    """Declare a field of a dataclass as a setting."""
    one = Setting(name, default, read, meaning, live)
    return field(default_factory=lambda: read(default), metadata={_SETTING: one})


def group(of: type[T]) -> T:
    """Declare a field that holds settings which are declared together, in a class of their own."""
    return field(default_factory=of, metadata={_GROUP: of})


def declared_in(group: Any) -> Iterator[Setting]:
    """Yield the settings that a class or its groups declare, in order."""
    for one in fields(group):
        if _SETTING in one.metadata:
            yield one.metadata[_SETTING]
        elif _GROUP in one.metadata:
            yield from declared_in(one.metadata[_GROUP])


def values_of(made: Any) -> dict[str, Any]:
    """Return the values of all settings in an object by their names."""
    found: dict[str, Any] = {}
    for one in fields(made):
        value = getattr(made, one.name)
        if _SETTING in one.metadata:
            found[one.metadata[_SETTING].name] = value
        elif _GROUP in one.metadata:
            found |= values_of(value)
    return found


def make(group: type[T], values: Mapping[str, Any]) -> T:
    """Make an object of its settings' values by name; the reverse of ``values_of``."""
    given: dict[str, Any] = {}
    for one in fields(cast("Any", group)):
        if _SETTING in one.metadata:
            given[one.name] = values[one.metadata[_SETTING].name]
        elif _GROUP in one.metadata:
            given[one.name] = make(one.metadata[_GROUP], values)
    return group(**given)
