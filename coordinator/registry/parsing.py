"""The schemas of requests and of stored versions, with the texts of what they refer to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from odradek.coordinator.runtime.steps import Step

from . import subjects
from .errors import InvalidSchemaError, RegistryError, invalid_schema
from .requests import SchemaRequest
from .schema_work import Equivalences, Form, SchemaWork, digest, together
from .schemas import AVRO, Reference, Schema, SchemaVersion
from .state import RegistryState

_MAX_REFERENCES = 2000  # of a schema, and of all that it refers to
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    """A request's schema as it would be stored. `equivalence`: see schema_work.Description."""

    schema: Schema
    form: Form
    equivalence: bytes


class SchemaParser:
    """Knows the state, from which references come. What may be long raises NotDoneError.

    It takes a step for each reference.
    """

    def __init__(self, state: RegistryState, work: SchemaWork, step: Step) -> None:
        self._state = state
        self._work = work
        self._step = step

    def parse_request(
        self, subject: str, request: SchemaRequest, *, is_new: bool, normalize: bool
    ) -> ParsedRequest:
        """Parse a request's schema, and give it the text by which it is stored.

        `is_new`: as new schemas are. JSON Schema and Protobuf are always checked as if they were,
        but nothing is checked or normalized when schemas are imported. Raises INVALID_SCHEMA,
        NotDoneError.
        """
        if self._state.mode_in_scope(subject).is_import:
            is_new = normalize = is_checked = checks_fields = False
        else:
            is_checked = is_new or request.schema_type != AVRO
            checks_fields = bool(self._state.config_in_scope(subject).get("validateFields"))
        try:
            references, texts = self._resolved(subject, request.references, deleted=not is_new)
            form = Form(
                request.schema_type, request.text, texts, is_checked, normalize, checks_fields
            )
            described = self._work.describe(form)
        except InvalidSchemaError as error:
            raise _invalid_by_type(request, str(error)) from None
        if normalize:
            references = tuple(sorted(set(references)))
        schema = Schema(
            schema_type=request.schema_type,
            text=described.text,
            references=references,
            metadata=request.metadata,
            rule_set=request.rule_set,
        )
        return ParsedRequest(schema=schema, form=form, equivalence=described.equivalence)

    def form_of(self, version: SchemaVersion) -> Form:
        """Return a stored version with the texts of what it refers to, which may be soft-deleted.

        Raises InvalidSchemaError.
        """
        schema = version.schema
        _, texts = self._resolved(version.subject, schema.references, deleted=True)
        return Form(schema.schema_type, schema.text, texts)

    def equivalents(
        self, versions: Sequence[SchemaVersion], equivalence: bytes
    ) -> list[SchemaVersion]:
        """Return the versions of a subject that have a digest, the newest first.

        Linear in the versions: 0.1 µs for each that is known. Raises NotDoneError.
        """
        if not versions:
            return []
        known = self._state.context_of(versions[0].subject).equivalences
        while unknown := [version for version in versions if version.schema.md5 not in known]:
            self._learn(unknown, known)
        return [v for v in reversed(versions) if known[v.schema.md5] == equivalence]

    def _learn(self, versions: Sequence[SchemaVersion], known: dict[bytes, bytes]) -> None:
        """Find the digests of the first stored versions.

        Some are parsed together, so that a decision is made again once for all of them. A text that
        cannot be parsed is like itself only. Raises NotDoneError.
        """
        forms = next(together(versions, self._form_of_any))
        found = self._digests([form for _, form in forms])
        for (version, _), equivalence in zip(forms, found, strict=True):
            known[version.schema.md5] = equivalence

    def _form_of_any(self, version: SchemaVersion) -> Form:
        """A stored version, without its references if they are not all there."""
        try:
            return self.form_of(version)
        except InvalidSchemaError:
            return Form(version.schema.schema_type, version.schema.text)

    def _digests(self, forms: Sequence[Form]) -> list[bytes]:
        try:
            return self._work.last_result(Equivalences(tuple(forms)))
        except InvalidSchemaError:  # one of them is too complicated
            return [self._digest(form) for form in forms]

    def _digest(self, form: Form) -> bytes:
        try:
            return self._work.describe(form).equivalence
        except InvalidSchemaError:
            return digest(form.schema_type, form.text)

    # -- references --------------------------------------------------------------------------------

    def _resolved(
        self, subject: str, references: Iterable[Reference], *, deleted: bool
    ) -> tuple[tuple[Reference, ...], tuple[tuple[str, str], ...]]:
        """Return references with real versions, and the names and texts of all that they need.

        `deleted`: soft-deleted versions may be referred to. Raises InvalidSchemaError.
        """
        needed = _Needed(self._state, self._step, deleted=deleted)
        own = tuple(replace(each, version=needed.add(subject, each)) for each in references)
        return own, tuple(needed.texts.items())


class _Needed:
    """The texts of all that one schema refers to, by their names. Raises InvalidSchemaError."""

    def __init__(self, state: RegistryState, step: Step, *, deleted: bool) -> None:
        self.texts: dict[str, str] = {}
        self._state = state
        self._step = step
        self._deleted = deleted
        self._names: set[str] = set()
        self._left = _MAX_REFERENCES

    def add(self, subject: str, reference: Reference, depth: int = 0) -> int:
        """Add a reference's text, after those that it needs; return its version.

        A name that was met before keeps its text: an inner reference of that name means it, too.
        """
        self._step()
        self._left -= 1
        if self._left < 0:
            raise InvalidSchemaError(f"more than {_MAX_REFERENCES} references")
        owner = subjects.beside(subject, reference.subject)
        found = self._state.version(owner, reference.version, deleted=self._deleted)
        if found is None:
            raise InvalidSchemaError(
                f'No schema reference found for subject "{owner}" and version {reference.version}'
            )
        if reference.name not in self._names:
            if depth >= _MAX_DEPTH:
                raise InvalidSchemaError(f"references to references, more than {_MAX_DEPTH} deep")
            self._names.add(reference.name)
            for needed in found.schema.references:
                self.add(found.subject, needed, depth + 1)
            self.texts[reference.name] = found.schema.text
        return found.version


def _invalid_by_type(request: SchemaRequest, detail: str) -> RegistryError:
    if detail.startswith("Invalid schema type"):
        return invalid_schema(detail)
    return invalid_schema(f"Invalid schema of type {request.schema_type}, details: {detail}")
