"""Work on the texts of schemas: parsing and comparing them, which may take seconds.

A piece of work is a value that says all that it needs, and `run` is a function of it. A decision of
the registry asks SchemaWork for results. Short work is done at once. For long work that nobody has
done yet the decision ends with NotDoneError: the caller has it done in another process
(broker/registry/service.py), and decides again with the result.

What speaks of many stored schemas is divided (`together`), because a piece of work is compared and
sent as a whole.

Confluent: CompatibilityLevel and CompatibilityChecker give the texts of Check.
"""

import hashlib
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from itertools import chain
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

from .errors import InvalidSchemaError
from .formats import Parsed, compatibility, formatted, parse
from .formats.effort import TooManyStepsError, first, limited
from .schemas import AVRO, SchemaVersion
from .settings import Level

logger = logging.getLogger("odradek.registry")

# Letters of all texts of a piece of work that is done at once, and the steps of its work: a few
# milliseconds. See formats/effort.py.
SHORT_LETTERS = 4000
_LETTERS_OF_ONE = 100  # what each of many schemas, and each reference, counts, too
_LETTERS_AT_ONCE = 256 * 1024  # of stored schemas in one piece of work, about
_SHORT_STEPS = 5000
# Work that takes more steps than these is given up.
_MAX_STEPS = 1_000_000
_MAX_STEPS_OF_A_LETTER = 20
_MAX_KEPT_LETTERS = 8 << 20  # a parsed schema takes about ten times the memory of its text
_COST_OF_ONE = 1000  # what a short text counts, too
_MAX_SHOWN_TEXT = 10 * 1024
TOO_COMPLICATED = "the schema is too complicated"
_OTHER_TYPE = "Incompatible because of different schema type"

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
R = TypeVar("R", covariant=True)

Parse = Callable[["Form"], Parsed]


class Form(NamedTuple):
    """A schema to parse: its text, the names and texts of what it refers to, and how it is parsed.

    `is_new`: more is checked than for a stored schema. `is_normalized`: without what has no
    meaning. `checks_fields`: a configuration has `validateFields`.
    """

    schema_type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
    is_new: bool = False
    is_normalized: bool = False
    checks_fields: bool = False

    @property
    def letters(self) -> int:
        """The length of all texts."""
        return len(self.text) + sum(len(text) + _LETTERS_OF_ONE for _, text in self.references)

    def parsed(self) -> Parsed:
        """Raises InvalidSchemaError."""
        found = parse(self.schema_type, self.text, dict(self.references), is_new=self.is_new)
        if self.checks_fields:
            found.check_fields()
        return found.normalized() if self.is_normalized else found


def together(items: Iterable[T], form_of: Callable[[T], Form]) -> Iterator[list[tuple[T, Form]]]:
    """Yield stored schemas with their forms, as many at a time as are one piece of work."""
    piece: list[tuple[T, Form]] = []
    letters = 0
    for item in items:
        form = form_of(item)
        piece.append((item, form))
        letters += form.letters + _LETTERS_OF_ONE
        if letters > _LETTERS_AT_ONCE:
            yield piece
            piece, letters = [], 0
    if piece:
        yield piece


class Work(Protocol[R]):
    """A piece of work."""

    @property
    def letters(self) -> int:
        """The length of all texts that are parsed."""

    def run(self, parse: Parse) -> R:
        """Do the work. Raises InvalidSchemaError."""


class Description(NamedTuple):
    """The text by which a schema is stored, and a digest that equivalent texts share.

    For Avro, texts are equivalent whose references stand in place or not, and in any order of
    attributes.
    """

    text: str
    equivalence: bytes


class Describe(NamedTuple):
    """Parse a schema."""

    form: Form

    @property
    def letters(self) -> int:
        return self.form.letters

    def run(self, parse: Parse) -> Description:
        parsed = parse(self.form)
        if self.form.schema_type == AVRO:
            from .formats.avro import AvroSchema  # a format is imported with its first schema

            assert isinstance(parsed, AvroSchema)
            text, alike = parsed.canonical_and_resolved()
        else:
            text = alike = parsed.canonical()
        return Description(text, digest(self.form.schema_type, alike))


class Equivalences(NamedTuple):
    """Parse stored schemas for their digests. What cannot be parsed is like its own text only."""

    forms: tuple[Form, ...]

    @property
    def letters(self) -> int:
        return sum(form.letters + _LETTERS_OF_ONE for form in self.forms)

    def run(self, parse: Parse) -> list[bytes]:
        return [self._of(form, parse) for form in self.forms]

    @staticmethod
    def _of(form: Form, parse: Parse) -> bytes:
        try:
            return Describe(form).run(parse).equivalence
        except InvalidSchemaError:
            return digest(form.schema_type, form.text)


class Validate(NamedTuple):
    """Check a new schema, whose description is known: it is that of a stored one."""

    form: Form

    @property
    def letters(self) -> int:
        return self.form.letters

    def run(self, parse: Parse) -> None:
        parse(self.form)


class Format(NamedTuple):
    """Write a schema in a format that has a name (formats.formatted)."""

    form: Form
    name: str

    @property
    def letters(self) -> int:
        return self.form.letters

    def run(self, parse: Parse) -> str:
        return formatted(self.form.schema_type, parse(self.form), self.name)


class Reserved(NamedTuple):
    """Check the fields that metadata reserve, `a, b`: a new schema keeps them and has none of them.

    The result are reasons against it. `before` are those of the version before.
    """

    form: Form
    fields: str
    before: str

    @property
    def letters(self) -> int:
        return self.form.letters + len(self.fields) + len(self.before)

    def run(self, parse: Parse) -> list[str]:
        fields, before = _names_in(self.fields), _names_in(self.before)
        removed = (
            f"The new schema has reserved field {name} removed from its metadata which is present"
            " in the old schema's metadata."
            for name in sorted(before - fields)
        )
        conflicts = (
            f"The new schema has field that conflicts with the reserved field {name}."
            for name in sorted(fields.intersection(parse(self.form).field_names()))
        )
        return first(chain(removed, conflicts))


class OldVersion(NamedTuple):
    """A version with which a new schema is compared."""

    number: int
    form: Form


class Check(NamedTuple):
    """Compare a new schema with versions before it, by a level. The result are reasons against it.

    The versions are compared in their order, up to the first that is not compatible. Each reason
    names the schema that reads and the one that is read ("new", "old"); after the reasons of a
    version come its number, and its text up to a limit.
    """

    form: Form
    level: Level
    is_lenient: bool = False
    versions: tuple[OldVersion, ...] = ()

    @property
    def letters(self) -> int:
        return self.form.letters + sum(version.form.letters for version in self.versions)

    def run(self, parse: Parse) -> list[str]:
        for version in self.versions:
            reasons = self._reasons(version, parse)
            if reasons:
                return reasons
        return []

    def _reasons(self, version: OldVersion, parse: Parse) -> list[str]:
        schema_type, lenient = self.form.schema_type, self.is_lenient
        if schema_type != version.form.schema_type:
            return [_OTHER_TYPE]
        old, new = parse(version.form), parse(self.form)
        reasons: list[str] = []
        if not self.level.startswith("BACKWARD"):
            found = compatibility(schema_type, old, new, lenient=lenient)
            reasons += [_named(reason, "old", "new") for reason in found]
        if not self.level.startswith("FORWARD"):
            found = compatibility(schema_type, new, old, lenient=lenient)
            reasons += [_named(reason, "new", "old") for reason in found]
            if not found and self.level.startswith("FULL"):
                return reasons  # Confluent's registry does not describe the version then
        return [*reasons, *_described(version)] if reasons else []


class Invalid(NamedTuple):
    """The result of work with a schema that is not valid."""

    reason: str


class NotDoneError(Exception):
    """A decision needs the result of long work."""

    def __init__(self, work: Work[object]) -> None:
        super().__init__("long work is not done yet")
        self.work = work


class KeptByLength(Generic[K, V]):
    """Keeps values. The least recently used go first; texts limit how many there are."""

    def __init__(self) -> None:
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._letters = 0

    def get(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, letters: int) -> None:
        if key not in self._kept:
            self._kept[key] = value, letters + _COST_OF_ONE
            self._letters += letters + _COST_OF_ONE
        while self._letters > _MAX_KEPT_LETTERS:
            _, (_, cost) = self._kept.popitem(last=False)
            self._letters -= cost


class Done:
    """What was done for one request, which is decided on again and again."""

    def __init__(self) -> None:
        self.results: dict[Work[object], object] = {}  # of long work
        # Versions that were compared, and are compatible; by the comparison, without versions.
        self.compatible: defaultdict[Check, set[tuple[str, int, bytes]]] = defaultdict(set)


class SchemaWork:
    """Does short work, and knows the results of long work that was done."""

    def __init__(self) -> None:
        self._parsed: KeptByLength[Form, Parsed] = KeptByLength()
        self._described: KeptByLength[Form, Description] = KeptByLength()
        self._done = Done()

    def knowing(self, done: Done) -> "SchemaWork":
        """Return what the decisions for one request use. It keeps what it parses here."""
        known = copy(self)
        known._done = done
        return known

    def describe(self, form: Form) -> Description:
        """Raises InvalidSchemaError, NotDoneError."""
        found = self._described.get(form)
        if found is None:
            as_stored = self._described.get(form._replace(is_new=False, checks_fields=False))
            if as_stored is None:
                found = self.result(Describe(form))
            else:
                self.result(Validate(form))
                found = as_stored
            self._described.put(form, found, form.letters + len(found.text))
        return found

    def reasons(
        self,
        check: Check,
        versions: Iterable[SchemaVersion],
        form_of: Callable[[SchemaVersion], Form],
    ) -> list[str]:
        """Make a comparison with versions, some at a time. Raises InvalidSchemaError, NotDoneError.

        What was compared is not looked at again when the request is decided on again.
        """
        compatible = self._done.compatible[check]
        waiting = [version for version in versions if _key(version) not in compatible]
        for some in together(waiting, form_of):
            old = tuple(OldVersion(version.version, form) for version, form in some)
            piece = check._replace(versions=old)
            reasons = self.last_result(piece)
            if reasons:
                return reasons
            compatible.update(_key(version) for version, _ in some)
        return []

    def last_result(self, work: Work[R]) -> R:
        """Like `result`, and forget it: many pieces of work need much memory."""
        result = self.result(work)
        self._done.results.pop(work, None)
        return result

    def result(self, work: Work[R]) -> R:
        """Return the result of work. Raises InvalidSchemaError, NotDoneError."""
        if work in self._done.results:
            result = self._done.results[work]
        elif work.letters <= SHORT_LETTERS:
            try:
                result = outcome(work, self._parse, steps=_SHORT_STEPS)
            except TooManyStepsError:
                raise NotDoneError(work) from None
        else:
            raise NotDoneError(work)
        if isinstance(result, Invalid):
            raise InvalidSchemaError(result.reason)
        return cast(R, result)

    def _parse(self, form: Form) -> Parsed:
        found = self._parsed.get(form)
        if found is None:
            found = form.parsed()
            self._parsed.put(form, found, form.letters)
        return found


def _key(version: SchemaVersion) -> tuple[str, int, bytes]:
    return version.subject, version.version, version.schema.md5


def outcome(work: Work[R], parse: Parse, *, steps: float = float("inf")) -> R | Invalid:
    """Do the work. What takes more steps than its length allows is not valid.

    Raises TooManyStepsError if it needs more than `steps`, and may take them.
    """
    most = _MAX_STEPS + _MAX_STEPS_OF_A_LETTER * work.letters
    try:
        with limited(min(steps, most)):
            return work.run(parse)
    except InvalidSchemaError as error:
        return Invalid(str(error))
    except RecursionError:
        return Invalid("nested too deeply")
    except TooManyStepsError:
        if steps < most:
            raise
        return Invalid(TOO_COMPLICATED)
    except Exception as error:  # the root of work on texts that clients may choose
        logger.exception("a schema could not be read")
        return Invalid(f"it cannot be read: {type(error).__name__}: {error}")


def digest(schema_type: str, text: str) -> bytes:
    """A digest of a text of a type."""
    return hashlib.blake2b(f"{schema_type} {text}".encode(), digest_size=16).digest()


def _names_in(text: str) -> set[str]:
    return {name for part in text.split(",") if (name := part.strip())}


def _named(reason: str, reader: str, writer: str) -> str:
    return reason.replace("%s", reader, 1).replace("%s", writer, 1)


def _described(version: OldVersion) -> Iterable[str]:
    text = version.form.text
    shown = text if len(text) <= _MAX_SHOWN_TEXT else f"{text[:_MAX_SHOWN_TEXT]}..."
    cut = "" if len(text) <= _MAX_SHOWN_TEXT else "<truncated> "
    return f"{{oldSchemaVersion: {version.number}}}", f"{{oldSchema: {cut}'{shown}'}}"
