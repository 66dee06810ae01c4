"""Which steps an input takes through the code: from which line to which, in odradek itself.

It serves where atheris cannot: to guide the fallback, and to choose what the corpus keeps. Readers
and writers that the compiler generated are folded into one. With each of their lines a feature of
its own a thousand codecs would need thousands of inputs, which all say the same: that a cut string
is refused, in this message too. So a line counts by its text without names and numbers.
"""

import keyword
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from odradek.protocol.quick_reader_source import QuickReaderSource
from odradek.protocol.reader_source import ReaderSource
from odradek.protocol.schema import Message
from odradek.protocol.source import Source
from odradek.protocol.writer_source import WriterSource
from tests.fuzz.target import UNGUIDED
from tests.support.messages import all_messages

ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("broker", "config", "coordinator", "protocol", "storage")
_GENERATED = re.compile(r"<(?:read|write) (\w+) v(\d+)>")
_WORD = re.compile(r"'[^']*'|\w+")
_SEVERAL = re.compile(r"x(?:\.x)*(?:, x(?:\.x)*)*,?")
_BRANCH = re.compile(r"if |elif |for ")

Feature = tuple[object, ...]


class Generated(NamedTuple):
    """The lines of a reader or a writer, without what is only this message's."""

    what: str
    lines: tuple[str, ...]


def features_of(one_input: Callable[[bytes], None], data: bytes) -> frozenset[Feature]:
    """The steps of one run. What the target raises goes through; then nothing is known."""
    found: set[Feature] = set()
    before = sys.gettrace()
    sys.settrace(_tracer(found))
    try:
        one_input(data)
    finally:
        sys.settrace(before)
    return frozenset(found)


def fewest(
    one_input: Callable[[bytes], None], inputs: Iterable[bytes], known: Iterable[bytes] = ()
) -> list[bytes]:
    """Inputs that reach together all that `inputs` reach, smallest first; without what `known` do.

    An input that raises is left out.
    """
    reached: set[Feature] = set()
    for data in known:
        reached |= features_of(one_input, data)
    kept = []
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        try:
            features = features_of(one_input, data)
        except Exception:  # noqa: BLE001 # a finding: it is reported elsewhere
            continue
        if not features <= reached:
            reached |= features
            kept.append(data)
    return kept


def _tracer(found: set[Feature]) -> Callable[[FrameType, str, Any], Any]:
    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        where = _traced(frame.f_code)
        if where is None:
            return None
        feature = _step if isinstance(where, str) else _generated_step
        last = frame.f_lineno

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add(feature(where, last, frame.f_lineno))
                last = frame.f_lineno
            elif event == "exception":
                found.add((feature(where, last, last), argument[0].__name__))
            return step

        return step

    return enter


def _step(filename: str, last: int, line: int) -> Feature:
    return filename, last, line


def _generated_step(source: Generated, last: int, line: int) -> Feature:
    """What a line was; and of one that decides, what it decided."""
    text = source.lines[last - 1]
    return (source.what, text, line == last + 1) if _BRANCH.match(text) else (source.what, text)


# What the codec of a message compiles.
_SOURCES: Mapping[str, Callable[[type[Message], int], Source]] = {
    "reader": ReaderSource,
    "reader in steps": partial(ReaderSource, in_steps=True),
    "quick reader": QuickReaderSource,
    "limited quick reader": partial(QuickReaderSource, is_limited=True),
    "writer": WriterSource,
    "writer in steps": partial(WriterSource, in_steps=True),
}


@cache
def _traced(code: CodeType) -> str | Generated | None:
    """The file of a function, or the source that it was generated from; None: not traced."""
    generated = _GENERATED.fullmatch(code.co_filename)
    if generated and not code.co_name.startswith("<"):
        return _generated(code, *generated.groups())
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT):
        return None
    package = path.relative_to(ROOT).parts[0]
    traced = package in _PACKAGES and not (package == "protocol" and path.stem in UNGUIDED)
    return code.co_filename if traced else None


def _generated(code: CodeType, name: str, version: str) -> Generated:
    message = next(each for each in all_messages() if each.__name__ == name)
    for what, make in _SOURCES.items():
        text = make(message, int(version)).text
        if code in compile(text, code.co_filename, "exec").co_consts:
            lines = tuple(_without_names(line.strip()) for line in text.splitlines())
            return Generated(what, lines)
    raise LookupError(f"nothing generates {code}")


@cache
def _without_names(line: str) -> str:
    """Keywords and texts stay; names and numbers are all alike, and so are rows of them."""

    def masked(word: re.Match[str]) -> str:
        is_text = word[0].startswith("'") and "{" not in word[0]
        return word[0] if is_text or keyword.iskeyword(word[0]) else "x"

    return _SEVERAL.sub("x", _WORD.sub(masked, line))
