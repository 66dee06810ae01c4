"""Collects generated Python source, and records which fields each line handles.

When a compiled function fails, the traceback gives the line, and the line gives the field for the
error message.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from .declaration import Field


class Place(NamedTuple):
    """A field that a line handles, and its distance in bytes from `p` at that line."""

    path: str
    skip: int = 0


class Failure(NamedTuple):
    """The field and the byte at which a compiled function failed."""

    path: str
    position: int


def mangled(path: str) -> str:
    """The path of a struct in a form that can be part of a variable's name."""
    return path.replace(".", "__")


def local(path: str, field: Field) -> str:
    """Return the name of the local variable of a field."""
    return f"v_{mangled(path)}{field.name}"


def first(path: str, field: Field) -> str:
    """Return the name of the local variable of a field of an array's first item."""
    return f"first_{mangled(path)}{field.name}"


class Source:
    """The lines of one function, and the objects that they use.

    `about` are the fields that the next emitted lines handle.
    """

    def __init__(self, title: str, namespace: dict[str, Any]) -> None:
        self.about: tuple[Place, ...] = ()
        self._filename = f"<{title}>"
        self._namespace = namespace
        self._constants: dict[int, str] = {}
        self._lines: list[str] = []
        self._places: dict[int, tuple[Place, ...]] = {}

    @property
    def text(self) -> str:
        """The source so far."""
        return "\n".join(self._lines)

    def emit(self, depth: int, *lines: str) -> None:
        """Add lines at an indentation, for the fields in `about`."""
        for line in lines:
            self._lines.append("    " * depth + line)
            self._places[len(self._lines)] = self.about

    def name(self, value: object) -> str:
        """A name for `value` that the source can use."""
        known = self._constants.get(id(value))
        if known is None:
            known = f"c{len(self._constants)}"
            self._constants[id(value)] = known
            self._namespace[known] = value  # keeps it alive, so that its id stays unique
        return known

    def compiled(self, function: str) -> Callable[..., Any]:
        """Compile the source; returns the function of that name."""
        exec(compile(self.text, self._filename, "exec"), self._namespace)  # generated here
        made: Callable[..., Any] = self._namespace[function]
        return made

    def failure(self, trace: TracebackType | None) -> Failure:
        """The field that the innermost generated line handled, and the byte at which it was.

        If the line reads several fields at once, it is the field in which the data ended.
        """
        places, position, limit = self.about, 0, 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._filename:
                places = self._places.get(trace.tb_lineno, places)
                position = trace.tb_frame.f_locals.get("p", position)
                limit = trace.tb_frame.f_locals.get("limit", limit)
            trace = trace.tb_next
        started = [place for place in places if position + place.skip <= limit] or places[:1]
        place = started[-1] if started else Place("")
        return Failure(place.path, position + place.skip)
