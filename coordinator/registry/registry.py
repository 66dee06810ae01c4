"""The registry's requests: each is a method that decides, and changes nothing.

A method that changes something returns a Decision: append its records to `_schemas`, replay each
(`state.replay`), then give the reply. Requests that change must be decided one after the other,
each after the replay of the one before. Methods raise RegistryError.

Parsing and comparing schemas can be long: methods that do it raise NotDoneError, see schema_work.
They follow references, which may be many: Registry.knowing gives them a step for each, see
runtime/steps.py. Methods that go through all subjects take a step, too. The others are quick.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from odradek.coordinator.runtime.steps import Step, no_step, stepping

from . import errors, records, subjects
from .records import ConfigKey, ContextKey, ModeKey, Record, SchemaKey
from .registration import Decision, Registration
from .schema_work import Done, Format, SchemaWork
from .schemas import SCHEMA_TYPES, Json, SchemaVersion
from .settings import Mode, changed_config, mode_named
from .state import RegistryState
from .subjects import ALL_CONTEXTS


class Registry(Registration):
    """Decides on requests by the state. See the module."""

    def __init__(
        self, state: RegistryState, work: SchemaWork | None = None, step: Step = no_step
    ) -> None:
        super().__init__(state, work, step)
        self.state = state

    def knowing(self, done: Done, step: Step = no_step) -> "Registry":
        """Return this registry for one decision: what was done for it, and the step it takes."""
        return Registry(self.state, self.work.knowing(done), step)

    # -- reading -----------------------------------------------------------------------------------

    def types(self) -> list[str]:
        return list(SCHEMA_TYPES)

    def subjects(
        self,
        prefix: str = ALL_CONTEXTS,
        *,
        deleted: bool = False,
        deleted_only: bool = False,
        step: Step = no_step,
    ) -> list[str]:
        """List subjects, sorted. Linear in the number of all subjects."""
        names = self.state.subjects(prefix, deleted=deleted or deleted_only, step=step)
        if deleted_only:
            return [name for name in names if not self.state.has_subject(name, deleted=False)]
        return list(names)

    def contexts(self) -> list[str]:
        return [subjects.DEFAULT_CONTEXT, *sorted(self.state.stored_contexts)]

    def versions(
        self, subject: str, *, deleted: bool = False, deleted_only: bool = False
    ) -> list[SchemaVersion]:
        """List the versions of a subject. Raises SUBJECT_NOT_FOUND."""
        subject = subjects.normalized(subject)
        if not self.state.has_subject(subject, deleted=deleted or deleted_only):
            raise errors.subject_not_found(subject)
        found = self.state.versions_of(subject, deleted=deleted or deleted_only)
        return [version for version in found if version.deleted or not deleted_only]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> SchemaVersion:
        """Return a version; -1 is the latest. Raises SUBJECT_NOT_FOUND, VERSION_NOT_FOUND."""
        subject = subjects.normalized(subject)
        for name in self.state.in_contexts(subject):
            found = self.state.version(name, number, deleted=deleted)
            if found is not None:
                return found
        if not self.state.has_subject(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        raise errors.version_not_found(number)

    def schema(self, schema_id: int, subject: str = "") -> SchemaVersion:
        """Return a version with an id, in a subject or a context. Raises SCHEMA_NOT_FOUND."""
        found = self.state.by_id(schema_id, subjects.normalized(subject))
        if found is None:
            raise errors.schema_not_found(schema_id)
        return found

    def schema_by_guid(self, guid: str) -> SchemaVersion:
        """Raises SCHEMA_NOT_FOUND."""
        try:
            found = self.state.by_guid(uuid.UUID(guid).bytes)
        except ValueError:
            found = None
        if found is None:
            raise errors.schema_not_found(guid)
        return found[0]

    def schema_versions(
        self, schema_id: int, subject: str = "", *, deleted: bool = False, step: Step = no_step
    ) -> list[SchemaVersion]:
        """List the newest version of each subject that has an id. Raises SCHEMA_NOT_FOUND.

        Linear in the number of these subjects.
        """
        named = self.schema(schema_id, subject)
        of_id = self.state.context_of(named.subject).versions_by_id[schema_id]
        return [
            version
            for name in stepping(list(of_id), step)
            if (version := self.state.version(name, of_id[name][-1], deleted=deleted)) is not None
        ]

    def referenced_by(self, subject: str, number: int, *, deleted: bool = False) -> list[int]:
        """Return the ids of the schemas that refer to a version, sorted.

        Raises SUBJECT_NOT_FOUND, VERSION_NOT_FOUND.
        """
        named = self.version(subject, number, deleted=True)
        found = self.state.referrers(named.subject, named.version, deleted=deleted)
        return sorted({version.id for version in found})

    def found_versions(
        self,
        prefix: str = ALL_CONTEXTS,
        *,
        deleted: bool = False,
        latest_only: bool = False,
        step: Step = no_step,
    ) -> list[SchemaVersion]:
        """List the versions of subjects with a prefix. Linear in the number of all versions."""
        found: list[SchemaVersion] = []
        for subject in self.state.subjects(prefix, deleted=deleted, step=step):
            versions = self.state.versions_of(subject, deleted=deleted)
            found += versions[-1:] if latest_only else versions
        return found

    def latest_with(
        self, subject: str, properties: Mapping[str, str], *, deleted: bool = False
    ) -> SchemaVersion:
        """Return the latest version whose metadata have these properties.

        Raises SUBJECT_NOT_FOUND, SCHEMA_NOT_FOUND.
        """
        subject = subjects.normalized(subject)
        for version in reversed(self.state.versions_of(subject, deleted=deleted)):
            metadata = version.schema.metadata
            if metadata and properties.items() <= metadata.get("properties", {}).items():
                return version
        if not self.state.has_subject(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        raise errors.schema_not_found()

    def ids_of_guid(self, guid: str) -> list[tuple[str, int]]:
        """Return the contexts that have a schema, and its id in each."""
        try:
            md5 = uuid.UUID(guid).bytes
        except ValueError:
            return []
        found = ((name, self.state.contexts.get(name)) for name in self.contexts())
        ids = ((name, context.id_of(md5)) for name, context in found if context)
        return [(name, schema_id) for name, schema_id in ids if schema_id is not None]

    def highest_id(self, subject: str) -> int:
        """Return the highest id of a subject's context."""
        return self.state.context_of(subjects.normalized(subject)).highest_id

    def text_in(self, version: SchemaVersion, text_format: str) -> str:
        """Return the text of a version in another format: see formats.formatted.

        Raises INVALID_SCHEMA, NotDoneError.
        """
        try:
            return self.work.result(Format(self._parser.form_of(version), text_format))
        except errors.InvalidSchemaError as error:
            raise errors.invalid_schema(str(error)) from None

    def aliased(self, subject: str) -> str:
        """Return the subject that an alias stands for, or the subject itself."""
        subject = subjects.normalized(subject)
        alias = (self.state.configs.get(subject) or {}).get("alias")
        return subjects.beside(subject, alias) if alias else subject

    # -- deleting ----------------------------------------------------------------------------------

    def delete_version(
        self, subject: str, number: int, *, permanent: bool = False
    ) -> Decision[int]:
        """Soft-delete a version, or delete it for good once it is. The reply is its number.

        Raises SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, VERSION_SOFT_DELETED, VERSION_NOT_SOFT_DELETED,
        REFERENCE_EXISTS, OPERATION_NOT_PERMITTED.
        """
        subject = subjects.normalized(subject)
        version = self.state.version(subject, number, deleted=True)
        if version is None:
            if not self.state.has_subject(subject, deleted=True):
                raise errors.subject_not_found(subject)
            raise errors.version_not_found(number)
        if version.deleted and not permanent:
            raise errors.version_soft_deleted(subject, number)
        self._check_writable(subject)
        if self.state.referrers(subject, version.version, deleted=permanent):
            raise errors.reference_exists(subject, version.version)
        if not permanent:
            made = [records.schema_record(version.as_deleted())]
        elif not version.deleted:
            raise errors.version_not_soft_deleted(subject, version.version)
        else:
            made = [records.tombstone(SchemaKey(subject, version.version))]
            if len(self.state.versions_of(subject, deleted=True)) == 1:
                made += self._settings_tombstones(subject)
        return Decision(version.version, self.state.stored(made))

    def delete_subject(
        self, subject: str, *, permanent: bool = False, step: Step = no_step
    ) -> Decision[list[int]]:
        """Soft-delete all versions of a subject, or delete them for good once they are.

        The reply has their numbers. Raises SUBJECT_NOT_FOUND, SUBJECT_SOFT_DELETED,
        SUBJECT_NOT_SOFT_DELETED, REFERENCE_EXISTS, OPERATION_NOT_PERMITTED. Linear in the versions.
        """
        subject = subjects.normalized(subject)
        if not self.state.has_subject(subject, deleted=True):
            raise errors.subject_not_found(subject)
        if not permanent and not self.state.has_subject(subject, deleted=False):
            raise errors.subject_soft_deleted(subject)
        self._check_writable(subject)
        versions = self.state.versions_of(subject, deleted=permanent)
        for version in stepping(versions, step):
            referrers = self.state.referrers(subject, version.version, deleted=permanent)
            if any(referrer.subject != subject for referrer in referrers):
                raise errors.reference_exists(subject, version.version)
            if permanent and not version.deleted:
                raise errors.subject_not_soft_deleted(subject)
        numbers = [version.version for version in versions]
        if permanent:
            # In falling order, because a version may refer to an older one of its subject.
            keys = (SchemaKey(subject, number) for number in reversed(numbers))
            made = [records.tombstone(key) for key in stepping(keys, step)]
            made += self._settings_tombstones(subject)
        else:
            made = [records.delete_subject_record(subject, numbers[-1])]
        return Decision(numbers, self.state.stored(made, step))

    def _check_writable(self, subject: str | None) -> None:
        if self.state.mode_in_scope(subject).is_read_only:
            context = subjects.parse(subject or "").qualified_context
            raise errors.not_permitted(
                f"Subject {subject} in context {context} is in read-only mode"
            )

    def _settings_tombstones(self, subject: str) -> list[Record]:
        made = []
        if subject in self.state.modes:
            made.append(records.tombstone(ModeKey(subject)))
        if subject in self.state.configs:
            made.append(records.tombstone(ConfigKey(subject)))
        return made

    def delete_context(self, context: str, step: Step = no_step) -> Decision[None]:
        """Delete a context, `:.prod:`, that has no subjects. Raises CONTEXT_NOT_EMPTY.

        Linear in the number of all subjects.
        """
        if any(self.state.subjects(context, deleted=True, step=step)):
            raise errors.context_not_empty(context)
        key = ContextKey(subjects.parse(context).context)
        return Decision(None, self.state.stored([records.tombstone(key)]))

    # -- configurations ----------------------------------------------------------------------------

    def config(self, subject: str | None, *, default_to_global: bool = False) -> Json:
        """Return a subject's configuration; None is the top level.

        With `default_to_global`, what it does not have itself comes from outside. Raises
        NO_SUBJECT_COMPATIBILITY.
        """
        key = subjects.settings_subject(subject)
        config = self.state.config_in_scope(key) if default_to_global else self.state.config(key)
        if config is None:
            raise errors.no_subject_compatibility(str(key))
        return config

    def change_config(self, subject: str | None, request: Mapping[str, Any]) -> Decision[Json]:
        """Change the fields that a request has; null removes one. The reply is the result.

        Raises INVALID_COMPATIBILITY_LEVEL, INVALID_SUBJECT, OPERATION_NOT_PERMITTED.
        """
        key = self._settings_key(subject)
        config = changed_config(self.state.configs.get(key), request)
        self._check_writable(key)
        return Decision(config, self.state.stored([records.config_record(key, config)]))

    def delete_config(self, subject: str | None) -> Decision[Json]:
        """Delete a configuration. The reply is what it was. Raises SUBJECT_NOT_FOUND."""
        key = subjects.settings_subject(subject)
        old = self.state.config(key)
        if old is None:
            raise errors.subject_not_found(key)
        self._check_writable(key)
        return Decision(old, self.state.stored([records.tombstone(ConfigKey(key))]))

    # -- modes -------------------------------------------------------------------------------------

    def mode(self, subject: str | None, *, default_to_global: bool = False) -> Mode:
        """Return a subject's mode; None is the top level. Raises NO_SUBJECT_MODE."""
        key = subjects.settings_subject(subject)
        mode = self.state.mode_in_scope(key) if default_to_global else self.state.mode(key)
        if mode is None:
            raise errors.no_subject_mode(str(key))
        return mode

    def change_mode(
        self,
        subject: str | None,
        name: str | None,
        *,
        force: bool = False,
        step: Step = no_step,
    ) -> Decision[str | None]:
        """Set the mode of a subject, a context, or (None) of all; no name removes it.

        IMPORT needs that there are no versions, unless forced; what is soft-deleted is then deleted
        for good. Raises INVALID_MODE, INVALID_SUBJECT, OPERATION_NOT_PERMITTED, REFERENCE_EXISTS.
        Linear in the number of all subjects when the mode is IMPORT.
        """
        key = self._settings_key(subject)
        mode = None if name is None else mode_named(name)
        if mode is Mode.FORWARD and key != f":{subjects.GLOBAL_CONTEXT}:":
            raise errors.RegistryError(
                errors.ErrorCode.INVALID_MODE, "Forward mode only supported on global level"
            )
        made: list[Record] = []
        is_import = mode is Mode.IMPORT and self.state.mode_in_scope(key) is not Mode.IMPORT
        if is_import and not force:
            made = self._cleared(key, step)
        if mode is None:
            made.append(records.tombstone(ModeKey(key)))
        else:
            made.append(records.mode_record(key, mode))
        return Decision(name, self.state.stored(made, step))

    def _cleared(self, selection: str | None, step: Step) -> list[Record]:
        """Make the records that delete what is soft-deleted, before an import."""
        if self.state.selected_subjects(selection, deleted=False, step=step):
            raise errors.not_permitted("Cannot import since found existing subjects")
        made = []
        for subject in self.state.selected_subjects(selection, deleted=True, step=step):
            for version in stepping(self.state.versions_of(subject, deleted=True), step):
                if self.state.referrers(subject, version.version, deleted=True):
                    raise errors.reference_exists(subject, version.version)
                made.append(records.tombstone(SchemaKey(subject, version.version)))
        return [*made, records.clear_subject_record(selection)]

    def delete_mode(self, subject: str | None, *, recursive: bool = False) -> Decision[Mode | None]:
        """Remove a mode. The reply is what it was. Raises SUBJECT_NOT_FOUND.

        With `recursive` and a context, the modes of its subjects are removed too.
        """
        key = subjects.settings_subject(subject)
        old = self.state.mode(key)
        if old is None and not recursive:
            raise errors.subject_not_found(key)
        keys = [key]
        if recursive and (key is None or not subjects.parse(key).name):
            context = subjects.parse(key or "").context
            keys += [
                other
                for other in self.state.modes
                if other is not None and other != key and subjects.parse(other).context == context
            ]
        return Decision(old, self.state.stored(records.tombstone(ModeKey(k)) for k in keys))

    def _settings_key(self, subject: str | None) -> str | None:
        if subject is not None and not subjects.is_valid(subject, for_settings=True):
            raise errors.invalid_subject(subject)
        return subjects.settings_subject(subject)
