"""Registers schemas, and looks them up.

A schema is the same as a stored one when its fingerprint is (schemas.py). If none has it, the
subject's versions are compared in other ways: a version with references may be found by a text
with the same types in place; one that another registry wrote with other blanks, by an equivalent
text; and metadata may lack the version that registration added to it.

When a subject is not in import mode, a new schema takes what it does not have from the latest
version and from the configuration's defaults and overrides: an empty text, metadata, and rules.

Confluent: KafkaSchemaRegistry.register, AbstractSchemaRegistry.lookUpSchemaUnderSubject.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from odradek.coordinator.runtime.steps import Step, no_step

from . import records, subjects
from .compatibility import check_of, compared_versions, reserved_check_of
from .errors import (
    ErrorCode,
    InvalidSchemaError,
    RegistryError,
    incompatible,
    invalid_schema,
    invalid_subject,
    not_permitted,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from .parsing import ParsedRequest, SchemaParser
from .records import Record
from .requests import LATEST, SchemaRequest
from .schema_work import SchemaWork
from .schemas import (
    Json,
    Schema,
    SchemaVersion,
    merged_metadata,
    merged_rule_sets,
    version_property,
    with_version_property,
    without_version_property,
)
from .settings import Mode
from .shapes import MAX_INT32
from .state import RegistryState

R = TypeVar("R")
_DEFAULTS = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """The records to append, and the reply to give once they are replayed.

    `equivalence` (subject, fingerprint, digest) is then known: a new version is not parsed again.
    """

    reply: R
    records: tuple[Record, ...] = ()
    equivalence: tuple[str, bytes, bytes] | None = None


class Registration:
    """Decisions about schemas of requests. They read the state, and do not change it.

    All raise NotDoneError if they need long work: see schema_work. They take a step for each
    reference that they follow.
    """

    def __init__(
        self, state: RegistryState, work: SchemaWork | None = None, step: Step = no_step
    ) -> None:
        self._state = state
        self.work = work or SchemaWork()
        self._parser = SchemaParser(state, self.work, step)

    def register(
        self, subject: str, request: SchemaRequest, *, normalize: bool = False, force: bool = False
    ) -> Decision[SchemaVersion]:
        """Register a schema as a new version of a subject, unless it is one already.

        `force` leaves out the compatibility check. Raises INCOMPATIBLE_SCHEMA, INVALID_SCHEMA,
        INVALID_SUBJECT, OPERATION_NOT_PERMITTED.
        """
        if not subjects.is_valid(subject):
            raise invalid_subject(subject)
        subject = subjects.normalized(subject)
        config = self._state.config_in_scope(subject)
        normalize = normalize or bool(config.get("normalize"))
        if not any(name in config for name in _DEFAULTS):
            found = self._already_registered(subject, request, normalize=normalize)
            if found is not None:
                return Decision(found)
        mode = self._check_mode(subject, request)
        live = self._state.versions_of(subject)
        if not mode.is_import:
            request = _populated(
                request, config, live[-1] if live else None, self._state.next_version(subject)
            )
        validates = request.id < 0 and config.get("validateNewSchemas", True)
        parsed = self._parse(subject, request, is_new=bool(validates), normalize=normalize)
        found, schema_id = self._same(subject, request, parsed)
        if found is not None:
            return Decision(found)
        if not mode.is_import and not force:
            self._check_compatible(subject, parsed, live, config)
        added = self._added(subject, request, parsed.schema, schema_id, mode)
        return replace(added, equivalence=(subject, parsed.schema.md5, parsed.equivalence))

    def look_up(
        self,
        subject: str,
        request: SchemaRequest,
        *,
        normalize: bool = False,
        deleted: bool = False,
    ) -> SchemaVersion:
        """Find the version of a subject that has a schema; with `deleted`, soft-deleted ones too.

        Contexts are searched if the subject is in the default one. Raises SUBJECT_NOT_FOUND,
        SCHEMA_NOT_FOUND, INVALID_SCHEMA.
        """
        subject = subjects.normalized(subject)
        for name in self._state.in_contexts(subject):
            if name != subject and not self._state.has_subject(name, deleted=deleted):
                continue
            try:
                found = self._look_up_populated(name, request, normalize=normalize, deleted=deleted)
            except RegistryError as error:
                if name == subject or error.code is not ErrorCode.INVALID_SCHEMA:
                    raise
                continue  # another context may lack what the schema refers to
            if found is not None:
                return found
        if not self._state.has_subject(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise schema_not_found()

    def incompatibilities(
        self,
        subject: str,
        request: SchemaRequest,
        version: int | None = None,
        *,
        normalize: bool = False,
    ) -> list[str]:
        """Return why a schema could not be registered; nothing if it could.

        It is compared with one version (-1: the latest), or with all that the level asks for.
        Raises VERSION_NOT_FOUND, INVALID_SCHEMA.
        """
        subject = subjects.normalized(subject)
        if version is None:
            previous = self._state.versions_of(subject)
        else:
            found = self._state.version(subject, version)
            if found is None and version != LATEST:
                raise version_not_found(version)
            previous = [] if found is None else [found]
        config = self._state.config_in_scope(subject)
        normalize = normalize or bool(config.get("normalize"))
        is_new = bool(config.get("validateNewSchemas", True))
        parsed = self._parse(subject, request, is_new=is_new, normalize=normalize)
        return self._reasons(parsed, previous, config)

    # -- steps -------------------------------------------------------------------------------------

    def _parse(
        self, subject: str, request: SchemaRequest, *, is_new: bool, normalize: bool
    ) -> ParsedRequest:
        if not request.text.strip():
            raise invalid_schema("Empty schema")
        return self._parser.parse_request(subject, request, is_new=is_new, normalize=normalize)

    def _check_mode(self, subject: str, request: SchemaRequest) -> Mode:
        mode = self._state.mode_in_scope(subject)
        where = f"Subject {subject} in context {subjects.parse(subject).qualified_context}"
        if mode.is_read_only:
            raise not_permitted(f"{where} is in read-only mode")
        if request.id >= 0 and not mode.is_import:
            raise not_permitted(f"{where} is not in import mode")
        if request.id < 0 and mode is not Mode.READWRITE:
            raise not_permitted(f"{where} is not in read-write mode")
        return mode

    def _already_registered(
        self, subject: str, request: SchemaRequest, *, normalize: bool
    ) -> SchemaVersion | None:
        """Find a version that has the request's schema already; the mode does not matter then."""
        if not request.text.strip():
            return None
        latest_only = request.version == LATEST
        found = self._look_up(
            subject, request, normalize=normalize, deleted=False, latest_only=latest_only
        )
        if found is None:
            return None
        if request.version == 0 or latest_only:
            return found if request.id in (-1, found.id) else None
        if found.id != request.id:
            return None
        if found.version == request.version:
            return found
        # Imports may have stored the same schema as several versions.
        other = self._state.version(subject, request.version)
        return other if other is not None and other.schema.md5 == found.schema.md5 else None

    def _same(
        self, subject: str, request: SchemaRequest, parsed: ParsedRequest
    ) -> tuple[SchemaVersion | None, int]:
        """Return the version that has the schema, and its id.

        If the subject has none, the id is that of the request, or of the schema in other subjects;
        -1 if it needs a new one. A request for a certain version makes a new version.
        """
        schema_id = request.id
        known = self._state.id_and_version(subject, parsed.schema)
        if known is not None and schema_id in (-1, known[0]):
            schema_id, number = known
            if request.version == 0 and number is not None:
                found = self._state.version(subject, number)
                if found is not None:
                    return found, schema_id
        if request.version == 0:
            for version in self._alike(parsed, self._state.versions_of(subject)):
                if schema_id in (-1, version.id):
                    return version, version.id
        return None, schema_id

    def _check_compatible(
        self, subject: str, parsed: ParsedRequest, live: list[SchemaVersion], config: Json
    ) -> None:
        reasons = self._reasons(parsed, live, config)
        if reasons:
            raise incompatible(subject, reasons)

    def _reasons(
        self, parsed: ParsedRequest, previous: list[SchemaVersion], config: Json
    ) -> list[str]:
        form, metadata = parsed.form, parsed.schema.metadata
        reasons: list[str] = []
        try:
            reserved = reserved_check_of(form, metadata, previous, config)
            reasons += [] if reserved is None else self.work.result(reserved)
            check = check_of(form, config)
            if check is not None:
                versions = compared_versions(metadata, previous, config)
                reasons += self.work.reasons(check, versions, self._parser.form_of)
        except InvalidSchemaError as error:
            raise invalid_schema(f"a version of the subject cannot be compared: {error}") from None
        if reasons:
            validates = "true" if config.get("validateFields") else "false"
            level = config["compatibilityLevel"]
            reasons.append(f"{{validateFields: '{validates}', compatibility: '{level}'}}")
        return reasons

    def _added(
        self, subject: str, request: SchemaRequest, schema: Schema, schema_id: int, mode: Mode
    ) -> Decision[SchemaVersion]:
        """Make the records of a new version."""
        number = self._state.next_version(subject)
        if request.version > 0:
            if request.version != number and not mode.is_import:
                raise invalid_schema("Version is not one more than previous version")
            number = request.version
        if schema_id < 0:
            schema_id = self._state.context_of(subject).highest_id + 1
        else:
            self._check_same_schema(subject, schema_id, schema)
        if max(number, schema_id) > MAX_INT32:  # somebody has stored the last
            raise not_permitted(f"no version or id is left for {subject}")
        added = SchemaVersion(subject=subject, version=number, id=schema_id, schema=schema)
        made = [*self._context_records(subject), *self._obsolete(added)]
        made.append(records.schema_record(added))
        return Decision(added, self._state.stored(made))

    def _check_same_schema(self, subject: str, schema_id: int, schema: Schema) -> None:
        context = subjects.parse(subject).qualified_context
        known = self._state.by_id(schema_id, context)
        if known is not None and known.schema != schema:
            raise not_permitted(
                f"Overwrite new schema with id {schema_id} in context {context} is not permitted."
            )

    def _context_records(self, subject: str) -> Iterable[Record]:
        context = subjects.parse(subject).context
        if context != subjects.DEFAULT_CONTEXT and context not in self._state.stored_contexts:
            yield records.context_record(context)

    def _obsolete(self, added: SchemaVersion) -> Iterable[Record]:
        """Delete older soft-deleted versions with the same id, unless something refers to them."""
        for version in self._state.versions_with_id(added.subject, added.id):
            if not version.deleted or version.version >= added.version:
                continue
            if not self._state.referrers(version.subject, version.version, deleted=True):
                yield records.tombstone(records.SchemaKey(version.subject, version.version))

    # -- looking up --------------------------------------------------------------------------------

    def _look_up_populated(
        self, subject: str, request: SchemaRequest, *, normalize: bool, deleted: bool
    ) -> SchemaVersion | None:
        """Look up a schema as it is, then with what registration would have added to it."""
        config = self._state.config_in_scope(subject)
        normalize = normalize or bool(config.get("normalize"))
        found = self._look_up(subject, request, normalize=normalize, deleted=deleted)
        latest = self._state.latest(subject)
        if found is not None or latest is None:
            return found
        populated = _with_metadata(request, config, latest, None)
        if populated == request:
            return None
        return self._look_up(subject, populated, normalize=normalize, deleted=deleted)

    def _look_up(
        self,
        subject: str,
        request: SchemaRequest,
        *,
        normalize: bool,
        deleted: bool,
        latest_only: bool = False,
    ) -> SchemaVersion | None:
        parsed = self._parse(subject, request, is_new=False, normalize=normalize)
        if latest_only:
            latest = self._state.latest(subject)
            return next(self._alike(parsed, [] if latest is None else [latest]), None)
        known = self._state.id_and_version(subject, parsed.schema)
        if known is not None and known[1] is not None:
            found = self._state.version(subject, known[1], deleted=deleted)
            if found is not None:
                return found
        return next(self._alike(parsed, self._state.versions_of(subject, deleted=deleted)), None)

    def _alike(
        self, parsed: ParsedRequest, versions: Sequence[SchemaVersion]
    ) -> Iterator[SchemaVersion]:
        """Yield versions that are the schema of a request, written in another way; newest first."""
        for version in self._parser.equivalents(versions, parsed.equivalence):
            if self._has_same_rest(parsed, version):
                yield version

    def _has_same_rest(self, parsed: ParsedRequest, version: SchemaVersion) -> bool:
        """Whether what a version has besides its text is that of a request."""
        schema, stored = parsed.schema, version.schema
        if schema.schema_type != stored.schema_type or schema.rule_set != stored.rule_set:
            return False
        # The request's text may have in place what the version refers to.
        is_resolved = not schema.references and bool(stored.references)
        if not is_resolved and schema.references != stored.references:
            return False
        return _has_same_metadata(schema.metadata, version)


def _has_same_metadata(metadata: Json | None, version: SchemaVersion) -> bool:
    """Whether metadata are alike, if the version number that one side may lack is left out."""
    stored = version.schema.metadata
    own, other = version_property(metadata), version_property(stored)
    if (own is None) == (other is None):
        return metadata == stored
    if own is not None and own != str(version.version):
        return False
    return without_version_property(metadata) == without_version_property(stored)


def _populated(
    request: SchemaRequest, config: Json, latest: SchemaVersion | None, number: int
) -> SchemaRequest:
    """Return a request with what it takes from the latest version and from the configuration."""
    if not request.text.strip():
        if latest is None:
            raise invalid_schema("Empty schema")
        old = latest.schema
        request = replace(
            request, text=old.text, schema_type=old.schema_type, references=old.references
        )
    return _with_metadata(request, config, latest, number)


def _with_metadata(
    request: SchemaRequest, config: Json, latest: SchemaVersion | None, number: int | None
) -> SchemaRequest:
    metadata, rule_set = request.metadata, request.rule_set
    if latest is not None:
        metadata = latest.schema.metadata if metadata is None else metadata
        rule_set = latest.schema.rule_set if rule_set is None else rule_set
    metadata = merged_metadata(config.get("defaultMetadata"), metadata)
    metadata = merged_metadata(metadata, config.get("overrideMetadata"))
    rule_set = merged_rule_sets(config.get("defaultRuleSet"), rule_set)
    rule_set = merged_rule_sets(rule_set, config.get("overrideRuleSet"))
    has_version = request.version != 0 or version_property(metadata) is not None
    if number is not None and has_version:
        metadata = with_version_property(metadata, number)
    return replace(request, metadata=metadata, rule_set=rule_set)
