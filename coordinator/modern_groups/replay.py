"""Applies the records of groups of one type.

In a compacted log any record of a group may come first, so any record creates the group. Only the
tombstone of its epoch removes it. A tombstone of an unknown group is ignored: the log cleaner has
removed the records it refers to.

Kafka: the replay methods of GroupMetadataManager.
"""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Generic, TypeVar, cast

from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.schema import Message

G = TypeVar("G")


class GroupRecords(Generic[G]):
    """The records of one type of group, and how each changes its group."""

    def __init__(
        self,
        new_group: Callable[[str, int], G],
        epoch_key: type[Message],
        apply_of: Mapping[type[Message], Callable[[G, Any, Any, int, Step], None]],
    ) -> None:
        """`new_group` is the class of the groups. It is called with a group id and a partition.

        `apply_of` is by key class. Its arguments: the group, the key, the value (None for a
        tombstone), the record's time in wall-clock ms, and a step, for values that may be large.
        """
        self._new_group = new_group
        self._epoch_key = epoch_key
        self.apply_of = apply_of

    def replay(
        self,
        groups: MutableMapping[str, Any],
        key: Any,
        value: Message | None,
        timestamp_ms: int = 0,
        *,
        partition: int = 0,
        step: Step = no_step,
    ) -> None:
        """Apply one record to `groups`: groups of any type by id. One of another type is replaced.

        `partition` is that of the groups' shard.

        A tombstone never replaces a group of another type.
        """
        group_id = key.group_id
        group = groups.get(group_id)
        if type(group) is not self._new_group:
            if value is None:
                return
            group = groups[group_id] = self._new_group(group_id, partition)
        if value is None and isinstance(key, self._epoch_key):
            del groups[group_id]
        else:
            self.apply_of[type(key)](cast("G", group), key, value, timestamp_ms, step)
