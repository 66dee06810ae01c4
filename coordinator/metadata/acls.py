"""Access control lists, as the metadata log has them: one record for each entry.

An entry applies to one resource (a literal name), to all resources of a type (the literal name
`*`), or to those whose names begin with a prefix. The entries are indexed by these patterns. A
lookup for a name asks the index once for each length that a prefix of the type has, so it does not
depend on the number of entries.

Thousands of entries may be added or removed in one turn of the event loop. Those that are added are
indexed before that, as Acls of their own. Those that are removed leave the index afterwards, in
steps; until then, lookups leave them out.

Kafka: AclsImage, AclCache, AclBindingFilter.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.records.cluster_metadata import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)

# In a filter: any resource type, operation or permission. On the wire: never renumber.
ANY = 1
# The literal name that stands for all resources of a type; also any host.
WILDCARD = "*"

K = TypeVar("K")
Entry: TypeAlias = AccessControlEntryRecord
# The entries of one pattern: by principal, then by id.
PatternEntries: TypeAlias = Mapping[str, Mapping[bytes, Entry]]
EntryFields: TypeAlias = tuple[int, str, int, str, str, int, int]


class PatternType(IntEnum):
    """How an entry's name applies to resources. On the wire and in records: never renumber.

    ANY and MATCH exist in filters only. MATCH selects the entries that apply to a name.
    """

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """What an entry does. On the wire and in records: never renumber."""

    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """The resources that an entry applies to."""

    resource_type: int
    pattern_type: int
    name: str


class AclFilter(NamedTuple):
    """Selects entries. None and ANY match everything."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches_pattern(self, pattern: Pattern) -> bool:
        """Whether the filter selects the entries of a pattern. Kafka: ResourcePatternFilter."""
        if self.resource_type not in (ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if pattern.pattern_type == PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name == WILDCARD

    def matches_entry(self, entry: Entry) -> bool:
        """Whether the filter selects an entry of a matching pattern."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (ANY, entry.operation)
            and self.permission in (ANY, entry.permission_type)
        )


class Acls:
    """The entries, by id and by pattern. Only replay changes them.

    `version` counts the changes, so that decisions can be cached until the next one.
    """

    def __init__(self) -> None:
        self.by_id: dict[bytes, Entry] = {}
        self.version = 0
        self._id_of: dict[EntryFields, bytes] = {}
        self._removed: list[Entry] = []  # and still in the index
        self._of_pattern: dict[Pattern, dict[str, dict[bytes, Entry]]] = {}
        self._prefix_lengths: dict[int, Counter[int]] = {}
        self._of_principal: dict[tuple[int, str], dict[bytes, Entry]] = {}

    def __contains__(self, entry: Entry) -> bool:
        """Whether there is an entry with the same fields, whatever its id."""
        return self._id_of.get(fields_of(entry)) in self.by_id

    def applying_to(self, resource_type: int, name: str) -> Iterator[PatternEntries]:
        """The entries of each pattern that a resource matches.

        As in Kafka's StandardAuthorizer, entries for `*` do not apply to longer names that begin
        with `*`.
        """
        for pattern in self._patterns_for(resource_type, name):
            is_wildcard = pattern.name == WILDCARD and pattern.pattern_type == PatternType.LITERAL
            if is_wildcard and name.startswith(WILDCARD) and name != WILDCARD:
                continue
            found: PatternEntries = self._of_pattern.get(pattern, {})
            if self._removed:
                found = self._without_removed(found)
            if found:
                yield found

    def _without_removed(self, found: PatternEntries) -> PatternEntries:
        left = {
            principal: {
                entry_id: entry for entry_id, entry in entries.items() if entry_id in self.by_id
            }
            for principal, entries in found.items()
        }
        return {principal: entries for principal, entries in left.items() if entries}

    def _patterns_for(self, resource_type: int, name: str) -> Iterator[Pattern]:
        """The patterns that match a name, and may have entries."""
        for pattern_type, pattern_name in patterns_of(name, self.prefix_lengths(resource_type)):
            yield Pattern(resource_type, pattern_type, pattern_name)

    def of_principal(self, resource_type: int, principal: str) -> Iterable[Entry]:
        """All entries of a principal on resources of a type."""
        found = self._of_principal.get((resource_type, principal), {}).values()
        return [entry for entry in found if entry.id in self.by_id] if self._removed else found

    def select(self, wanted: AclFilter, step: Step = no_step) -> Iterator[Entry]:
        """The entries that match a filter. They may change between two items, and in a step."""
        patterns: Iterable[Pattern] = self._of_pattern
        if wanted.name is not None and wanted.resource_type != ANY:
            patterns = list(self._patterns_for(wanted.resource_type, wanted.name))
        for pattern in stepping(patterns, step):
            if wanted.matches_pattern(pattern):
                of_pattern = list(self._of_pattern.get(pattern, {}).values())
                for entries in stepping(of_pattern, step):
                    for entry in stepping(list(entries.values()), step):
                        if wanted.matches_entry(entry) and entry.id in self.by_id:
                            yield entry

    def prefix_lengths(self, resource_type: int) -> Iterable[int]:
        """The lengths of the prefixes that have entries, of a type or of ANY."""
        if resource_type != ANY:
            return self._prefix_lengths.get(resource_type, ())
        return set().union(*self._prefix_lengths.values())

    def records(self) -> Iterable[AccessControlEntryRecord]:
        """The records of a snapshot."""
        return tuple(self.by_id.values())

    def replay(self, record: AccessControlEntryRecord) -> None:
        """Add an entry."""
        entry_id, principal = record.id, record.principal
        self.clean_index()  # its id may have been removed
        if entry_id in self.by_id:
            self._remove(entry_id)
        self.version += 1
        self.by_id[entry_id] = record
        self._id_of[fields_of(record)] = entry_id
        pattern = pattern_of(record)
        self._of_pattern.setdefault(pattern, {}).setdefault(principal, {})[entry_id] = record
        if pattern.pattern_type == PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(pattern.resource_type, Counter())
            lengths[len(pattern.name)] += 1
        of_principal = self._of_principal.setdefault((pattern.resource_type, principal), {})
        of_principal[entry_id] = record

    def replay_added(self, added: "Acls") -> None:
        """Add the entries of other Acls, which give their index away."""
        self.clean_index()
        if not self.by_id.keys().isdisjoint(added.by_id):
            for record in added.by_id.values():
                self.replay(record)
            return
        self.version += 1
        self.by_id.update(added.by_id)
        self._id_of.update(added._id_of)
        for resource_type, lengths in added._prefix_lengths.items():
            self._prefix_lengths.setdefault(resource_type, Counter()).update(lengths)
        for pattern in self._of_pattern.keys() & added._of_pattern.keys():
            _merge(added._of_pattern.pop(pattern), self._of_pattern[pattern])
        self._of_pattern.update(added._of_pattern)
        _merge(added._of_principal, self._of_principal)

    def replay_removal(self, record: RemoveAccessControlEntryRecord) -> None:
        """Remove an entry."""
        self._remove(record.id)

    def replay_removals(self, entry_ids: Iterable[bytes]) -> None:
        """Remove entries. `clean_index` must follow."""
        self.version += 1
        for entry_id in entry_ids:
            entry = self.by_id.pop(entry_id, None)
            if entry is not None:
                self._removed.append(entry)

    def clean_index(self, step: Step = no_step) -> None:
        """Take the entries out of the index that have been removed."""
        while self._removed:
            self._unindex(self._removed.pop())
            step()

    def _remove(self, entry_id: bytes) -> None:
        entry = self.by_id.pop(entry_id, None)
        if entry is not None:
            self.version += 1
            self._unindex(entry)

    def _unindex(self, entry: Entry) -> None:
        entry_id, fields = entry.id, fields_of(entry)
        if self._id_of.get(fields) == entry_id:  # else it has been added again
            del self._id_of[fields]
        pattern = pattern_of(entry)
        by_principal = self._of_pattern[pattern]
        _discard(by_principal, entry.principal, entry_id)
        if not by_principal:
            del self._of_pattern[pattern]
        if pattern.pattern_type == PatternType.PREFIXED:
            lengths = self._prefix_lengths[pattern.resource_type]
            lengths[len(pattern.name)] -= 1
            if not lengths[len(pattern.name)]:
                del lengths[len(pattern.name)]
        _discard(self._of_principal, (pattern.resource_type, entry.principal), entry_id)


class AclSelection:
    """Selects the entries that match many filters, like `Acls.select` for each of them.

    Filters that set the same fields use one index of all entries, made for the first of them. So
    the cost is that of the filters, the entries and the matches, not of filters times entries.
    Valid until the entries change.
    """

    def __init__(self, acls: Acls, step: Step = no_step) -> None:
        self._acls = acls
        self._step = step
        self._indexes: dict[tuple[int, ...], dict[tuple[object, ...], list[Entry]]] = {}

    def matches(self, wanted: AclFilter) -> list[Entry]:
        """The entries that match a filter. The list is shared between equal filters."""
        found = [self._find(wanted, *pattern) for pattern in self._patterns(wanted)]
        return found[0] if len(found) == 1 else list(chain.from_iterable(found))

    def _patterns(self, wanted: AclFilter) -> Iterable[tuple[int | None, str | None]]:
        """The pattern types and names that a filter selects; None selects all."""
        name = wanted.name
        if wanted.pattern_type != PatternType.MATCH or name is None:
            is_any = wanted.pattern_type in (PatternType.ANY, PatternType.MATCH)
            return [(None if is_any else wanted.pattern_type, name)]
        return patterns_of(name, self._acls.prefix_lengths(wanted.resource_type))

    def _find(self, wanted: AclFilter, pattern_type: int | None, name: str | None) -> list[Entry]:
        fields = (
            None if wanted.resource_type == ANY else wanted.resource_type,
            name,
            pattern_type,
            wanted.principal,
            wanted.host,
            None if wanted.operation == ANY else wanted.operation,
            None if wanted.permission == ANY else wanted.permission,
        )
        places = tuple(place for place, value in enumerate(fields) if value is not None)
        if places not in self._indexes:
            index: dict[tuple[object, ...], list[Entry]] = {}
            for entry in stepping(self._acls.by_id.values(), self._step):
                all_fields = fields_of(entry)
                index.setdefault(tuple(all_fields[place] for place in places), []).append(entry)
            self._indexes[places] = index
        return self._indexes[places].get(tuple(fields[place] for place in places), [])


def patterns_of(name: str, prefix_lengths: Iterable[int]) -> Iterator[tuple[PatternType, str]]:
    """The types and names of the patterns that match a name, of prefixes with these lengths."""
    yield PatternType.LITERAL, name
    if name != WILDCARD:
        yield PatternType.LITERAL, WILDCARD
    for length in prefix_lengths:
        if length <= len(name):
            yield PatternType.PREFIXED, name[:length]


def pattern_of(entry: Entry) -> Pattern:
    """The resources that an entry applies to."""
    return Pattern(entry.resource_type, entry.pattern_type, entry.resource_name)


def fields_of(entry: Entry) -> EntryFields:
    """An entry without its id."""
    return (
        entry.resource_type,
        entry.resource_name,
        entry.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def _merge(added: dict[K, dict[bytes, Entry]], known: dict[K, dict[bytes, Entry]]) -> None:
    """Add entries to an index. It may keep the tables of those that are added."""
    for key, entries in added.items():
        if key in known:
            known[key].update(entries)
        else:
            known[key] = entries


def _discard(index: dict[K, dict[bytes, Entry]], key: K, entry_id: bytes) -> None:
    """Remove an entry from an index, and the key if it was its last entry."""
    del index[key][entry_id]
    if not index[key]:
        del index[key]
