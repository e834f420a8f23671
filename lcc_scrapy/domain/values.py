"""Frozen dataclasses of which there may be millions."""

from dataclasses import MISSING, fields
from typing import Any, TypeVar

Value = TypeVar("Value")


def quickly_made(cls: type[Value]) -> type[Value]:
    """Let a frozen dataclass with slots, and no base, make its values three to five times as fast.

    A frozen class sets each field by a call of ``object.__setattr__``. Here a new value is one of an open
    class with the same slots while its fields are set: Python lets an object change between such classes.
    Returns the class, as it was if it looks at its values, or has weak references.
    """
    slots = cls.__slots__  # type: ignore[attr-defined]
    if hasattr(cls, "__post_init__") or "__weakref__" in slots or hasattr(cls.__init__, "is_quick"):
        return cls
    known: dict[str, Any] = {"frozen": cls, "put": object.__setattr__, "MISSING": MISSING}
    known["opened"] = type(cls.__name__, (), {"__slots__": slots})
    given, body = ["self"], ["put(self, '__class__', opened)"]
    for one in fields(cls):  # type: ignore[arg-type]
        value = one.name
        if one.default_factory is not MISSING:
            known[f"make_{one.name}"] = one.default_factory
            value = f"make_{one.name}() if {one.name} is MISSING else {one.name}"
        known[f"default_{one.name}"] = one.default
        needed = one.default is MISSING and one.default_factory is MISSING
        given.append(one.name if needed else f"{one.name}=default_{one.name}")
        body.append(f"self.{one.name} = {value}")
    lines = "\n    ".join([*body, "self.__class__ = frozen"])
    exec(f"def __init__({', '.join(given)}):\n    {lines}", known)  # noqa: S102 - names of our own fields
    known["__init__"].is_quick = True
    cls.__init__ = known["__init__"]  # type: ignore[method-assign]
    return cls
