"""What the registry knows, built by replaying the records of `_schemas`. Only `replay` changes it.

Each context numbers its schemas for itself. An id belongs to a fingerprint (schemas.py): the same
schema in two subjects of a context has one id. The next id is one more than the highest that was
ever seen, so an id of a deleted schema is not given again before a restart; nor after it, as long
as a version with a higher id is there.

Soft delete marks a version (or all up to one): it is left out of listings, but its id still
answers, since records in topics may have it. Permanent delete is a tombstone: the version is gone.

Every lookup costs a few dictionary accesses, except those that say so.

Confluent: InMemoryCache, KafkaStoreMessageHandler.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from odradek.coordinator.runtime.steps import Step, no_step, stepping

from . import records, subjects
from .records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    Key,
    ModeKey,
    Record,
    SchemaKey,
    UnreadableError,
)
from .schemas import Json, Schema, SchemaVersion
from .settings import Level, Mode, with_inherited
from .subjects import Subject

DEFAULT_LEVEL = Level.BACKWARD


class Context:
    """The ids of one context."""

    def __init__(self) -> None:
        self.highest_id = 0
        # Of a fingerprint: the versions that have it, the one of the newest record last, with their
        # ids. An import may have given the schema another id.
        self.ids_by_md5: dict[bytes, dict[SchemaKey, int]] = {}
        # Of an id: the versions with it in each subject, in rising order; the subjects in the order
        # of registration.
        self.versions_by_id: dict[int, dict[str, list[int]]] = {}
        # By fingerprint: digests of stored schemas, as far as they are known (parsing.py). One text
        # may have different ones in two contexts, because it may refer to different schemas there.
        self.equivalences: dict[bytes, bytes] = {}

    def id_of(self, md5: bytes) -> int | None:
        """Return the id that the schema with a fingerprint has in its newest record."""
        ids = self.ids_by_md5.get(md5)
        return next(reversed(ids.values())) if ids else None


class RegistryState:
    """Subjects, ids, references, configurations and modes."""

    def __init__(self) -> None:
        # A subject's versions in rising order; soft-deleted ones too.
        self.versions: dict[str, dict[int, SchemaVersion]] = {}
        self._names: list[str] = []  # of the subjects, sorted
        self.contexts: dict[str, Context] = {subjects.DEFAULT_CONTEXT: Context()}
        self.stored_contexts: set[str] = set()  # those with a record
        self.configs: dict[str | None, Json] = {}
        self.modes: dict[str | None, Mode] = {}
        # Of a version: the versions that refer to it.
        self._referrers: dict[SchemaKey, set[SchemaKey]] = {}
        self._live_counts: dict[str, int] = {}  # versions that are not soft-deleted
        # Keys that the log has in another spelling than ours (see records).
        self._other_spellings: dict[Key, set[bytes]] = {}

    # -- replay ------------------------------------------------------------------------------------

    def replay(
        self,
        key: bytes,
        value: bytes | None,
        stored_ms: int | None = None,
        *,
        step: Step = no_step,
    ) -> None:
        """Apply one record of the log. Raises UnreadableError, and then nothing has changed.

        `stored_ms` is the time of the record. All that may be unreadable is read before a change.
        A record that is about all versions of a subject, or about all subjects, takes a step for
        each: who reads meanwhile sees some of the versions deleted.
        """
        decoded = records.decode_key(key)
        self._apply(decoded, value, stored_ms, step)
        if key != decoded.encode():
            if value is not None:
                self._other_spellings.setdefault(decoded, set()).add(key)
            elif decoded in self._other_spellings:
                self._other_spellings[decoded].discard(key)

    def _apply(self, key: Key, value: bytes | None, stored_ms: int | None, step: Step) -> None:
        match key:
            case SchemaKey():
                version = None if value is None else records.decode_schema(key, value, stored_ms)
                self._put_schema(key, version)
            case ConfigKey(subject):
                if value is None:
                    self.configs.pop(subject, None)
                else:
                    self.configs[subject] = records.decode_config(value)
            case ModeKey(subject):
                if value is None:
                    self.modes.pop(subject, None)
                else:
                    self.modes[subject] = records.decode_mode(value)
            case DeleteSubjectKey(str(subject)) if value is not None:
                self._soft_delete(subject, records.decode_deleted_version(value), step)
            case ClearSubjectKey(selection) if value is not None:
                for subject in stepping(list(self._names), step):
                    if subjects.selects(selection, subject):
                        self._drop_deleted(subject, step)
            case ContextKey(context):
                if value is None:
                    self.stored_contexts.discard(context)
                else:
                    self.stored_contexts.add(context)

    def _put_schema(self, key: SchemaKey, version: SchemaVersion | None) -> None:
        old = self.versions.get(key.subject, {}).get(key.version)
        if version is not None and self._has_other_schema(version):
            raise UnreadableError(f"id {version.id} of {key} is that of another schema")
        if version is None:
            if old is not None:
                self._forget(old)
            return
        if old is not None:
            self._forget_uses(old)
        if key.subject not in self.versions:
            insort(self._names, key.subject)
        of_subject = self.versions.setdefault(key.subject, {})
        is_in_order = old is not None or not of_subject or next(reversed(of_subject)) < key.version
        of_subject[key.version] = version
        if not is_in_order:
            self.versions[key.subject] = dict(sorted(of_subject.items()))
        if not version.deleted:
            self._live_counts[key.subject] = self._live_counts.get(key.subject, 0) + 1
        context = self.context_of(key.subject, create=True)
        context.highest_id = max(context.highest_id, version.id)
        context.ids_by_md5.setdefault(version.schema.md5, {})[key] = version.id
        by_subject = context.versions_by_id.setdefault(version.id, {})
        insort(by_subject.setdefault(key.subject, []), key.version)
        for referred in _referred(version):
            self._referrers.setdefault(referred, set()).add(key)

    def _has_other_schema(self, version: SchemaVersion) -> bool:
        """Whether the id of a version is that of another text in its context."""
        known = self.by_id(version.id, subjects.parse(version.subject).qualified_context)
        return known is not None and known.schema.text != version.schema.text

    def _forget(self, version: SchemaVersion) -> None:
        subject = version.subject
        self._forget_uses(version)
        of_subject = self.versions[subject]
        del of_subject[version.version]
        if not of_subject:
            del self.versions[subject]
            del self._names[bisect_left(self._names, subject)]

    def _forget_uses(self, version: SchemaVersion) -> None:
        """Forget what is known of a version besides its place in its subject."""
        subject, number = version.subject, version.version
        if not version.deleted:
            self._live_counts[subject] -= 1
        key = SchemaKey(subject, number)
        for referred in _referred(version):
            referrers = self._referrers.get(referred, set())
            referrers.discard(key)
            if not referrers:
                self._referrers.pop(referred, None)
        context = self.context_of(subject)
        context.equivalences.pop(version.schema.md5, None)
        ids = context.ids_by_md5[version.schema.md5]
        del ids[key]
        if not ids:
            del context.ids_by_md5[version.schema.md5]
        by_subject = context.versions_by_id[version.id]
        by_subject[subject].remove(number)
        if not by_subject[subject]:
            del by_subject[subject]
        if not by_subject:
            del context.versions_by_id[version.id]

    def _soft_delete(self, subject: str, last_version: int, step: Step) -> None:
        of_subject = self.versions.get(subject, {})
        for number in stepping(list(of_subject), step):
            if number <= last_version and not of_subject[number].deleted:
                of_subject[number] = of_subject[number].as_deleted()
                self._live_counts[subject] -= 1

    def _drop_deleted(self, subject: str, step: Step) -> None:
        of_subject = self.versions[subject]
        for number in stepping(list(of_subject), step):
            if of_subject[number].deleted:
                self._forget(of_subject[number])

    # -- subjects and versions ---------------------------------------------------------------------

    def versions_of(self, subject: str, *, deleted: bool = False) -> list[SchemaVersion]:
        """Return a subject's versions in rising order; with `deleted`, soft-deleted ones too."""
        found = self.versions.get(subject, {}).values()
        return [version for version in found if deleted or not version.deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> SchemaVersion | None:
        """Return a version of a subject; the latest for -1."""
        if number == -1:
            return self.latest(subject)
        version = self.versions.get(subject, {}).get(number)
        return version if version is not None and (deleted or not version.deleted) else None

    def latest(self, subject: str) -> SchemaVersion | None:
        """Return the highest version that is not soft-deleted."""
        if not self._live_counts.get(subject):
            return None
        for version in reversed(self.versions[subject].values()):
            if not version.deleted:
                return version
        return None

    def next_version(self, subject: str) -> int:
        of_subject = self.versions.get(subject)
        return next(reversed(of_subject)) + 1 if of_subject else 1

    def has_subject(self, subject: str, *, deleted: bool) -> bool:
        return subject in self.versions if deleted else bool(self._live_counts.get(subject))

    def in_contexts(self, subject: str) -> list[str]:
        """Return a subject, and those of its name in all contexts if it is in the default one."""
        if subjects.parse(subject).context != subjects.DEFAULT_CONTEXT:
            return [subject]
        return [subject, *(f":{name}:{subject}" for name in sorted(self.stored_contexts))]

    def subjects(
        self, prefix: str, *, deleted: bool = False, step: Step = no_step
    ) -> Iterator[str]:
        """Yield the names of subjects with a prefix (subjects.begins), sorted.

        Linear in the number of subjects.
        """
        begins = subjects.begins(prefix)
        for subject in stepping(list(self._names), step):
            if begins(subject) and self.has_subject(subject, deleted=deleted):
                yield subject

    def selected_subjects(
        self, selection: str | None, *, deleted: bool, step: Step = no_step
    ) -> list[str]:
        """Return the subjects of a context, or the one that is named. Linear as `subjects`."""
        return [
            name
            for name in self.subjects(subjects.ALL_CONTEXTS, deleted=deleted, step=step)
            if subjects.selects(selection, name)
        ]

    def referrers(self, subject: str, number: int, *, deleted: bool) -> list[SchemaVersion]:
        """Return the versions that refer to one; with `deleted`, soft-deleted ones too."""
        found = self._referrers.get(SchemaKey(subject, number), ())
        versions = (self.version(key.subject, key.version, deleted=deleted) for key in found)
        return [version for version in versions if version is not None]

    # -- ids ---------------------------------------------------------------------------------------

    def context_of(self, subject: str, *, create: bool = False) -> Context:
        name = subjects.parse(subject).context
        if create:
            return self.contexts.setdefault(name, Context())
        return self.contexts.get(name) or Context()

    def note_equivalence(self, equivalence: tuple[str, bytes, bytes] | None) -> None:
        """Keep the digest of a version that was stored: its subject, fingerprint and digest."""
        if equivalence is not None:
            subject, md5, digest = equivalence
            self.context_of(subject).equivalences[md5] = digest

    def by_id(self, schema_id: int, subject: str = "") -> SchemaVersion | None:
        """Return a version with an id.

        It is looked for in the subject, or in its context if it names only that. An id that the
        default context's subject does not have is looked for in the subject of other contexts,
        and then in the default context: clients know a subject, but not its context.
        """
        wanted = subjects.parse(subject)
        found = self._by_id(schema_id, wanted)
        if found is not None or not wanted.name or wanted.context != subjects.DEFAULT_CONTEXT:
            return found
        for context in sorted(self.stored_contexts):
            found = self._by_id(schema_id, Subject(context, wanted.name))
            if found is not None:
                return found
        return self._by_id(schema_id, Subject(wanted.context, ""))

    def _by_id(self, schema_id: int, wanted: Subject) -> SchemaVersion | None:
        context = self.contexts.get(wanted.context)
        by_subject = context.versions_by_id.get(schema_id) if context else None
        if not by_subject:
            return None
        subject = wanted.qualified if wanted.name else next(iter(by_subject))
        numbers = by_subject.get(subject)
        return self.versions[subject][numbers[-1]] if numbers else None

    def versions_with_id(self, subject: str, schema_id: int) -> list[SchemaVersion]:
        """Return a subject's versions with an id, in rising order; soft-deleted ones too."""
        numbers = self.context_of(subject).versions_by_id.get(schema_id, {}).get(subject, ())
        return [self.versions[subject][number] for number in numbers]

    def by_guid(self, md5: bytes) -> tuple[SchemaVersion, str] | None:
        """Return a version with a fingerprint, and its context."""
        for name in (subjects.DEFAULT_CONTEXT, *sorted(self.stored_contexts)):
            context = self.contexts.get(name)
            schema_id = context.id_of(md5) if context else None
            if schema_id is not None:
                found = self._by_id(schema_id, Subject(name, ""))
                if found is not None:
                    return found, name
        return None

    def id_and_version(self, subject: str, schema: Schema) -> tuple[int, int | None] | None:
        """Return the id that a schema has in a subject's context, and its newest version in it."""
        context = self.context_of(subject)
        schema_id = context.id_of(schema.md5)
        by_subject = None if schema_id is None else context.versions_by_id.get(schema_id)
        if schema_id is None or not by_subject:
            return None
        numbers = by_subject.get(subject)
        return schema_id, numbers[-1] if numbers else None

    # -- settings ----------------------------------------------------------------------------------

    def config(self, subject: str | None) -> Json | None:
        """Return a subject's own configuration; at the top level, the default if there is none."""
        config = self.configs.get(subject)
        if config is None:
            return {"compatibilityLevel": DEFAULT_LEVEL.value} if _is_top(subject) else None
        return {"compatibilityLevel": DEFAULT_LEVEL.value, **config}

    def config_in_scope(self, subject: str | None) -> Json:
        """Return the configuration that holds for a subject."""
        own = None if subject is None else self.config(subject)
        if own is not None:
            return with_inherited(own, self.config(None) or {})
        for outer in _outer(subject):
            if outer in self.configs:
                return self.config(outer) or {}
        return {"compatibilityLevel": DEFAULT_LEVEL.value}

    def mode(self, subject: str | None) -> Mode | None:
        """Return a subject's own mode; at the top level, the default if there is none."""
        mode = self.modes.get(subject)
        return Mode.READWRITE if mode is None and _is_top(subject) else mode

    def mode_in_scope(self, subject: str | None) -> Mode:
        for outer in (subject, *_outer(subject)):
            if outer in self.modes:
                return self.modes[outer]
        return Mode.READWRITE

    # -- records -----------------------------------------------------------------------------------

    def stored(self, made: Iterable[Record], step: Step = no_step) -> tuple[Record, ...]:
        """Return records as they must be appended.

        Before one whose key is in the log in another spelling, that key is deleted: compaction
        would keep it for ever, and it would come back once our tombstone is gone.
        """
        appended: list[Record] = []
        for record in stepping(made, step):
            if self._other_spellings:
                spellings = self._other_spellings.get(records.decode_key(record.key), ())
                appended += [Record(spelling, None) for spelling in sorted(spellings)]
            appended.append(record)
        return tuple(appended)


def _is_top(subject: str | None) -> bool:
    return subject is None or subjects.parse(subject).context == subjects.GLOBAL_CONTEXT


def _outer(subject: str | None) -> tuple[str | None, ...]:
    """Return where a subject's settings come from if it has none: its context, then all of them."""
    context = "" if subject is None else subjects.parse(subject).qualified_context
    return context or None, f":{subjects.GLOBAL_CONTEXT}:"


def _referred(version: SchemaVersion) -> set[SchemaKey]:
    return {
        SchemaKey(subjects.beside(version.subject, reference.subject), reference.version)
        for reference in version.schema.references
    }
