"""Parses the schemas of requests and of stored versions, with what they refer to.

Parsed schemas are kept, the least recently used go first; they are limited by the length of their
texts. So only the first request with a text is long. `is_parsed` says whether one is.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from . import subjects
from .errors import InvalidSchemaError, RegistryError, invalid_schema
from .formats import Parsed, parse
from .requests import SchemaRequest
from .schemas import AVRO, Reference, Schema, SchemaVersion
from .state import RegistryState

_MAX_KEPT_TEXT = 16 << 20  # a parsed schema takes about ten times the memory of its text
_COST_OF_ONE = 1000  # what a short text counts, too
_MAX_REFERENCES = 1000

_Texts = tuple[tuple[str, str], ...]  # the references' names and texts
_Key = tuple[str, str, _Texts, bool]


@dataclass(frozen=True, kw_only=True)
class ParsedRequest:
    """A request's schema as it would be stored, and its parsed form."""

    schema: Schema
    parsed: Parsed

    @cached_property
    def equivalence(self) -> bytes:
        """See SchemaParser.equivalence."""
        return _equivalence(self.schema.schema_type, self.parsed)


class SchemaParser:
    """Knows the state, from which references come. May be used by several threads."""

    def __init__(self, state: RegistryState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, Parsed] = OrderedDict()
        self._kept_length = 0
        self._equivalences: dict[bytes, bytes] = {}

    def is_parsed(self, subject: str, request: SchemaRequest, *, is_new: bool) -> bool:
        """Whether parsing this request is quick, because its text was parsed lately."""
        try:
            _, texts = self._resolved(subject, request.references, deleted=not is_new)
        except InvalidSchemaError:
            return True
        return (request.schema_type, request.text, texts, is_new) in self._kept

    def parse_request(
        self, subject: str, request: SchemaRequest, *, is_new: bool, normalize: bool
    ) -> ParsedRequest:
        """Parse a request's schema, and give it the text by which it is stored.

        `is_new`: as new schemas are. May be long (see formats.parse). Raises INVALID_SCHEMA.
        """
        try:
            references, texts = self._resolved(subject, request.references, deleted=not is_new)
            parsed = self._parse(request.schema_type, request.text, texts, is_new=is_new)
            if normalize:
                parsed = parsed.normalized()
                references = tuple(sorted(set(references)))
            text = parsed.canonical()
        except InvalidSchemaError as error:
            raise _refused(request, str(error)) from None
        schema = Schema(
            schema_type=request.schema_type,
            text=text,
            references=references,
            metadata=request.metadata,
            rule_set=request.rule_set,
        )
        return ParsedRequest(schema=schema, parsed=parsed)

    def parse_version(self, version: SchemaVersion) -> Parsed:
        """Parse a stored version; soft-deleted versions may be referred to. May be long.

        Raises InvalidSchemaError.
        """
        schema = version.schema
        _, texts = self._resolved(version.subject, schema.references, deleted=True)
        return self._parse(schema.schema_type, schema.text, texts, is_new=False)

    def equivalence(self, version: SchemaVersion) -> bytes:
        """Return a digest that equivalent texts share, whichever registry wrote them.

        The first call for a version is long; digests are kept.
        """
        md5 = version.schema.md5
        found = self._equivalences.get(md5)
        if found is None:
            try:
                found = _equivalence(version.schema.schema_type, self.parse_version(version))
            except InvalidSchemaError:
                found = _digest(version.schema.schema_type, version.schema.text)
            self._equivalences[md5] = found
        return found

    def keep_equivalence(self, parsed: ParsedRequest) -> None:
        """Keep the digest of a schema that becomes a version, so that it is not parsed for it."""
        self._equivalences[parsed.schema.md5] = parsed.equivalence

    def _parse(self, schema_type: str, text: str, texts: _Texts, *, is_new: bool) -> Parsed:
        key = (schema_type, text, texts, is_new)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        parsed = parse(schema_type, text, dict(texts), is_new=is_new)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = parsed
                self._kept_length += _cost(key)
            while self._kept_length > _MAX_KEPT_TEXT:
                oldest, _ = self._kept.popitem(last=False)
                self._kept_length -= _cost(oldest)
        return parsed

    # -- references --------------------------------------------------------------------------------

    def _resolved(
        self, subject: str, references: Iterable[Reference], *, deleted: bool
    ) -> tuple[tuple[Reference, ...], _Texts]:
        """Return references with real versions, and the texts of all that they need, in order.

        `deleted`: soft-deleted versions may be referred to. Raises InvalidSchemaError.
        """
        texts: dict[str, str] = {}
        own = tuple(
            replace(reference, version=self._resolve(subject, reference, texts, set(), deleted))
            for reference in references
        )
        return own, tuple(texts.items())

    def _resolve(
        self,
        subject: str,
        reference: Reference,
        texts: dict[str, str],
        above: set[tuple[str, int]],
        deleted: bool,
    ) -> int:
        """Add a reference's text, after those that it needs; return its version."""
        owner = subjects.beside(subject, reference.subject)
        found = self._state.version(owner, reference.version, deleted=deleted)
        if found is None:
            raise InvalidSchemaError(
                f'No schema reference found for subject "{owner}" and version {reference.version}'
            )
        place = (found.subject, found.version)
        if reference.name not in texts and place not in above:
            if len(texts) >= _MAX_REFERENCES:
                raise InvalidSchemaError(f"more than {_MAX_REFERENCES} references")
            for needed in found.schema.references:
                self._resolve(found.subject, needed, texts, {*above, place}, deleted)
            texts.setdefault(reference.name, found.schema.text)
        return found.version


def _equivalence(schema_type: str, parsed: Parsed) -> bytes:
    """See SchemaParser.equivalence. For Avro, references and the order of attributes are alike."""
    if schema_type == AVRO:
        from .formats.avro import AvroSchema

        assert isinstance(parsed, AvroSchema)
        return _digest(schema_type, parsed.resolved())
    return _digest(schema_type, parsed.canonical())


def _digest(schema_type: str, text: str) -> bytes:
    whole = f"{schema_type} {text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).digest()


def _cost(key: _Key) -> int:
    _, text, texts, _ = key
    return _COST_OF_ONE + len(text) + sum(len(referred) for _, referred in texts)


def _refused(request: SchemaRequest, detail: str) -> RegistryError:
    if detail.startswith("Invalid schema type"):
        return invalid_schema(detail)
    return invalid_schema(f"Invalid schema of type {request.schema_type}, details: {detail}")
