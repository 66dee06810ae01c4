"""Regular expressions in linear time, where google-re2 has no wheel. The part of its interface.

The syntax is RE2's without Unicode classes, `[[:alpha:]]`, `\\b`, `\\Q`, octal numbers, and flags
other than i and s. What is missing is refused by name, and so is a pattern of more than
MAX_INSTRUCTIONS. Python's own `re` is not used: it goes back, and may match one text for hours.

A pattern becomes a program (Thompson, 1968). All its states are followed at once. A set of states
and the next character give the next set, which is kept, so each pair is computed once. When more
than MAX_KEPT are kept, all are dropped. The time for a text is linear in its length: a lookup for a
character, or at worst a step through the program. A lookup takes 0.1 us, RE2 a twentieth.

RE2: https://github.com/google/re2/wiki/Syntax
"""

from collections.abc import Callable, Iterable
from typing import Never

MAX_INSTRUCTIONS = 1_000
MAX_REPEAT = 1_000
MAX_DEPTH = 100
MAX_KEPT = 100_000  # indexes in all sets together: some 5 MB
COST_OF_A_STEP = 20
"""How much longer than RE2 a character takes."""

_IS_OF_CLASS: dict[str, Callable[[str], bool]] = {
    "d": frozenset("0123456789").__contains__,
    "s": frozenset("\t\n\f\r ").__contains__,
    "w": lambda char: char.isascii() and (char.isalnum() or char == "_"),
}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MISSING_ESCAPES = frozenset("bBpPCQ0123456789")
_BEGIN, _END, _MATCH = "begin", "end", "match"

Predicate = Callable[[str], bool]
# What a program does at each index: test a character, go on at indexes relative to it, test for an
# end of the text, or match, which is the last.
Instruction = Predicate | tuple[int, ...] | str


class error(Exception):  # noqa: N801, N818 # google-re2's name
    """The pattern is not valid, or not available here. `args[0]`: why, as bytes."""


class Options:
    """Options that a caller may set. They change nothing here."""

    max_mem = 0
    log_errors = False
    never_capture = True


def purge() -> None:
    """Do nothing: nothing is cached."""


def compile(pattern: str, options: object = None) -> "Pattern":  # noqa: A001, ARG001 # as in re2
    """Compile a pattern. Raises `error`."""
    return Pattern(pattern, _Parser(pattern).program())


class Pattern:
    """A compiled pattern."""

    def __init__(self, pattern: str, program: list[Instruction]) -> None:
        self.pattern = pattern
        self.programsize = len(program)
        self._program = program
        self._kept: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}
        self._kept_indexes = 0

    def fullmatch(self, text: str | bytes) -> bool | None:
        """True if the pattern matches the whole text, otherwise None."""
        return self._match(text, is_search=False)

    def search(self, text: str | bytes) -> bool | None:
        """True if the pattern matches a part of the text, otherwise None."""
        return self._match(text, is_search=True)

    def possiblematchrange(self, _: int) -> Never:
        """Raise `error`: the range is not known."""
        raise error(b"the range is not known")

    def _match(self, text: str | bytes, *, is_search: bool) -> bool | None:
        if isinstance(text, bytes):
            text = text.decode()
        match = len(self._program) - 1
        states = self._reached([0], at_begin=True)
        for char in text:
            if is_search and match in states:
                return True
            found = self._kept.get((states, char, is_search))
            states = self._next(states, char, is_search) if found is None else found
            if not states and not is_search:
                return None
        return match in self._reached(states, at_begin=not text, at_end=True) or None

    def _next(self, states: frozenset[int], char: str, is_search: bool) -> frozenset[int]:
        after = [index + 1 for index in states if self._accepts(index, char)]
        reached = self._reached([0, *after] if is_search else after)
        self._kept_indexes += 1 + len(reached)
        if self._kept_indexes > MAX_KEPT:
            self._kept.clear()
            self._kept_indexes = 0
        self._kept[states, char, is_search] = reached
        return reached

    def _accepts(self, index: int, char: str) -> bool:
        instruction = self._program[index]
        return callable(instruction) and instruction(char)

    def _reached(
        self, indexes: Iterable[int], *, at_begin: bool = False, at_end: bool = False
    ) -> frozenset[int]:
        """The indexes that test a character or an end, or match, and are reached from these."""
        pending, seen, reached = list(indexes), set[int](), set[int]()
        while pending:
            index = pending.pop()
            if index in seen:
                continue
            seen.add(index)
            instruction = self._program[index]
            if isinstance(instruction, tuple):
                pending += [index + step for step in instruction]
            elif instruction == _BEGIN:
                pending += [index + 1] if at_begin else []
            elif instruction == _END and at_end:
                pending.append(index + 1)
            else:
                reached.add(index)
        return frozenset(reached)


class _Parser:
    """Makes the program of a pattern. A part of a program has relative steps only."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._names: set[str] = set()
        self._ignores_case = self._has_newlines = False

    def program(self) -> list[Instruction]:
        program = self._alternatives()
        if self._at < len(self._text):
            raise _wrong("unexpected )")
        return [*program, _MATCH]

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if not self._peek(text):
            return False
        self._at += len(text)
        return True

    def _char(self, problem: str) -> str:
        if self._at == len(self._text):
            raise _wrong(problem)
        self._at += 1
        return self._text[self._at - 1]

    # -- parts -------------------------------------------------------------------------------------

    def _alternatives(self) -> list[Instruction]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _wrong("expression nests too deeply")
        flags = self._ignores_case, self._has_newlines
        part = self._sequence()
        while self._take("|"):
            other = self._sequence()
            part = _checked([(1, len(part) + 2), *part, (len(other) + 1,), *other])
        self._ignores_case, self._has_newlines = flags
        self._depth -= 1
        return part

    def _sequence(self) -> list[Instruction]:
        part: list[Instruction] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            part = _checked(part + self._repeated(self._atom()))
        return part

    def _repeated(self, part: list[Instruction]) -> list[Instruction]:
        times = self._times()
        if times is None:
            return part
        self._take("?")  # which of the matches it prefers does not matter
        if self._times() is not None:
            raise _wrong("bad repetition operator")
        least, most = times
        if least * len(part) > MAX_INSTRUCTIONS:
            raise _too_large()
        repeated = part * least
        if most is None:
            return [*repeated, (1, len(part) + 2), *part, (-len(part) - 1,)]
        for _ in range(most - least):
            repeated = _checked([*repeated, (1, len(part) + 1), *part])
        return repeated

    def _times(self) -> tuple[int, int | None] | None:
        """Read how often the part before is repeated; None if it is not."""
        for char, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(char):
                return times
        end = self._text.find("}", self._at)
        if not self._peek("{") or end < 0:
            return None
        first, comma, last = self._text[self._at + 1 : end].partition(",")
        if not _is_number(first) or (last and not _is_number(last)):
            return None  # it stands for itself
        self._at = end + 1
        if len(first) > 4 or len(last) > 4:
            raise _wrong("invalid repetition size")
        least = int(first)
        most = int(last) if last else None if comma else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise _wrong("invalid repetition size")
        return least, most

    def _atom(self) -> list[Instruction]:
        if self._times() is not None:
            raise _wrong("no argument for repetition operator")
        char = self._char("missing argument")
        if char == "(":
            return self._group()
        if char == "[":
            return [self._class()]
        if char == ".":
            return [_anything if self._has_newlines else "\n".__ne__]
        if char in "^$":
            return [_BEGIN if char == "^" else _END]
        if char == "\\":
            if self._take("A"):
                return [_BEGIN]
            if self._take("z"):
                return [_END]
            return [self._escape()]
        return [self._literal(char)]

    def _group(self) -> list[Instruction]:
        flags = self._ignores_case, self._has_newlines
        if self._take("?P<") or self._take("?<"):
            self._name()
        elif self._take("?") and not self._flags():
            return []  # they are for the rest of the group around
        part = self._alternatives()
        if not self._take(")"):
            raise _wrong("missing )")
        self._ignores_case, self._has_newlines = flags
        return part

    def _name(self) -> None:
        name, end, _ = self._text[self._at :].partition(">")
        if not end or not name.isascii() or not name.isidentifier() or name in self._names:
            raise _wrong("invalid named capture group")
        self._names.add(name)
        self._at += len(name) + 1

    def _flags(self) -> bool:
        """Read flags. Returns whether a group follows."""
        is_set = True
        while (char := self._char("missing )")) not in ":)":
            if char == "-":
                is_set = False
            elif char == "i":
                self._ignores_case = is_set
            elif char == "s":
                self._has_newlines = is_set
            elif char in "mU":
                raise _missing(f"(?{char}")
            else:
                raise _wrong("invalid perl operator")
        return char == ":"

    # -- characters --------------------------------------------------------------------------------

    def _literal(self, char: str) -> Predicate:
        return self._any_case(char.__eq__)

    def _any_case(self, accepts: Predicate) -> Predicate:
        if not self._ignores_case:
            return accepts
        return lambda char: accepts(char) or accepts(char.lower()) or accepts(char.upper())

    def _escape(self) -> Predicate:
        found = self._escaped()
        return self._literal(found) if isinstance(found, str) else found

    def _escaped(self) -> str | Predicate:
        """Read what follows a backslash: a character, or a class of them."""
        char = self._char("trailing \\")
        if (accepts := _IS_OF_CLASS.get(char.lower())) is not None:
            return accepts if char.islower() else _not(accepts)
        if char == "x":
            return self._hexadecimal()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _MISSING_ESCAPES:
            raise _missing("\\" + char)
        if char.isalnum() or not char.isascii():
            raise _wrong("invalid escape sequence")
        return char

    def _hexadecimal(self) -> str:
        if self._take("{"):
            digits, end, _ = self._text[self._at :].partition("}")
            self._at += len(digits) + 1
        else:
            digits = self._text[self._at : self._at + 2]
            end = "}" if len(digits) == 2 else ""
            self._at += 2
        is_hexadecimal = all(digit in "0123456789abcdefABCDEF" for digit in digits)
        if not end or not digits or not is_hexadecimal or len(digits) > 8:
            raise _wrong("invalid escape sequence")
        if (code := int(digits, 16)) > 0x10FFFF:
            raise _wrong("invalid escape sequence")
        return chr(code)

    def _class(self) -> Predicate:
        is_negated = self._take("^")
        accepted: list[Predicate] = []
        while not accepted or not self._peek("]"):
            if self._peek("[:"):
                raise _missing("[[:")
            first = self._member()
            if callable(first):
                accepted.append(first)
            elif self._peek("-") and not self._peek("-]"):
                self._take("-")
                last = self._member()
                if callable(last) or last < first:
                    raise _wrong("invalid character class range")
                accepted.append(_range(first, last))
            else:
                accepted.append(first.__eq__)
        self._take("]")
        accepts = self._any_case(lambda char: any(each(char) for each in accepted))
        return _not(accepts) if is_negated else accepts

    def _member(self) -> str | Predicate:
        char = self._char("missing ]")
        return self._escaped() if char == "\\" else char


def _anything(_: str) -> bool:
    return True


def _not(accepts: Predicate) -> Predicate:
    return lambda char: not accepts(char)


def _range(first: str, last: str) -> Predicate:
    return lambda char: first <= char <= last


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _checked(part: list[Instruction]) -> list[Instruction]:
    if len(part) > MAX_INSTRUCTIONS:
        raise _too_large()
    return part


def _too_large() -> error:
    return _wrong("pattern too large")


def _missing(what: str) -> error:
    return _wrong(f"{what} is not available without google-re2")


def _wrong(problem: str) -> error:
    return error(problem.encode())
