"""Python source in the making: how the compiler writes down a reader or a writer.

Beside the lines it keeps which fields each line is about. That is all the bookkeeping that errors
need: when the compiled function fails, the traceback names the line, and the line names the field.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from .declaration import Field


class Place(NamedTuple):
    """A field that a line is about, and how many bytes behind the line's position it begins."""

    path: str
    skip: int = 0


class Failure(NamedTuple):
    """Where a compiled function failed."""

    path: str
    position: int


def mangled(path: str) -> str:
    """The path of a struct as a part of a name."""
    return path.replace(".", "__")


def local(path: str, field: Field) -> str:
    """The local variable that holds a field."""
    return f"v_{mangled(path)}{field.name}"


def first(path: str, field: Field) -> str:
    """The local variable that holds a field of the first item of an array."""
    return f"first_{mangled(path)}{field.name}"


class Source:
    """Lines of one function, and the objects they name."""

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
        """Add lines at an indentation, about the current field."""
        for line in lines:
            self._lines.append("    " * depth + line)
            self._places[len(self._lines)] = self.about

    def name(self, value: object) -> str:
        """A name by which the source can say `value`."""
        known = self._constants.get(id(value))
        if known is None:
            known = f"c{len(self._constants)}"
            self._constants[id(value)] = known
            self._namespace[known] = value  # which also keeps its id from being given away
        return known

    def compiled(self, function: str) -> Callable[..., Any]:
        """The function of that name."""
        exec(compile(self.text, self._filename, "exec"), self._namespace)  # our own source
        made: Callable[..., Any] = self._namespace[function]
        return made

    def failure(self, trace: TracebackType | None) -> Failure:
        """The field that the innermost of our lines was about, and the byte `p` it was at.

        A line may read several fields at once: it is the one in which the data ended.
        """
        places, position, limit = self.about, 0, 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._filename:
                places = self._places.get(trace.tb_lineno, places)
                position = trace.tb_frame.f_locals.get("p", position)
                limit = trace.tb_frame.f_locals.get("limit", limit)
            trace = trace.tb_next
        begun = [place for place in places if position + place.skip <= limit] or places[:1]
        place = begun[-1] if begun else Place("")
        return Failure(place.path, position + place.skip)
