"""`odradek groups`: describe groups with their lag, set their offsets, delete them."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription, OffsetSpec

from odradek.tools.tables import counted, print_json, show_table

from .admin import cluster, connect, known_offsets, partition_offsets, report_each, result, results
from .failure import CommandError, kafka_failure
from .positions import Offsets, Partition, resolve_position

CLEAR_SCREEN = "\x1b[2J\x1b[H"
_SHIFT = re.compile("[+-][0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """What a group has committed in a partition, and what is left.

    None: nothing is committed, or the partition does not answer. `member` and `host` are the id and
    the address of the member that reads it, "" if none does.
    """

    topic: str
    partition: int
    committed: int | None
    end_offset: int | None
    lag: int | None
    member: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """The offset of a partition before and after a reset."""

    topic: str
    partition: int
    before: int | None
    after: int


class GroupCommands:
    """The commands, on one connection. Each raises CommandError."""

    def __init__(self, bootstrap: str | None, file: Path | None) -> None:
        self._admin = connect(bootstrap, file)

    def describe(self, names: Sequence[str], *, as_json: bool) -> None:
        """Print the members of groups, what they have committed, and their lag."""
        described = []
        for name in names:
            group = self._described(name)
            described.append((group, self._lags(group)))
        if as_json:
            print_json(
                [
                    {
                        "group": group.group_id,
                        "state": _state_of(group),
                        "members": [
                            {"member": each.member_id, "client": each.client_id, "host": each.host}
                            for each in group.members
                        ],
                        "partitions": [asdict(lag) for lag in lags],
                    }
                    for group, lags in described
                ]
            )
            return
        header = ("topic", "partition", "committed", "end offset", "lag", "member", "host")
        for group, lags in described:
            rows = [_cells(lag) for lag in lags]
            members = counted(len(group.members), "member")
            show_table(f"{group.group_id}: {_state_of(group)}, {members}", header, rows)

    def watch(self, names: Sequence[str], every_s: float) -> None:
        """Print the description again and again, until control-C."""
        while True:
            if sys.stdout.isatty():
                typer.echo(CLEAR_SCREEN, nl=False)
            self.describe(names, as_json=False)
            time.sleep(every_s)

    def reset_offsets(
        self, name: str, topics: Sequence[str], target: str, *, execute: bool, as_json: bool
    ) -> None:
        """Set the offsets of a group without members, or only show what would be set.

        `target`: earliest, latest, an offset, +N or -N, or a time (moments.py).
        """
        # A group that does not exist may get offsets: it has no members.
        group = result(f"describe group {name}", self._admin.describe_consumer_groups([name])[name])
        if execute and group.members:
            raise CommandError(
                f"group {name} has {len(group.members)} members, which would overwrite the offsets;"
                " stop them first"
            )
        changes = self._changes(name, topics, target)
        if execute:
            wanted = [TopicPartition(each.topic, each.partition, each.after) for each in changes]
            request = ConsumerGroupTopicPartitions(name, wanted)
            done = results(
                "set offsets of group", self._admin.alter_consumer_group_offsets([request])
            )
            for each in done[name].topic_partitions or []:
                if each.error is not None:
                    raise kafka_failure(f"set offset of {each.topic}-{each.partition}", each.error)
        if as_json:
            print_json([asdict(change) for change in changes])
            return
        rows = [_cells(change) for change in changes]
        title = f"{name}: " + ("set" if execute else "would be set; --execute sets them")
        show_table(title, ("topic", "partition", "before", "after"), rows)

    def delete(self, names: Sequence[str]) -> None:
        """Delete groups without members, with their offsets."""
        report_each("delete group", "deleted", self._admin.delete_consumer_groups(list(names)))

    # -- what the broker knows --------------------------------------------------------------------

    def _described(self, name: str) -> ConsumerGroupDescription:
        """The group. Raises CommandError if it does not exist."""
        future = self._admin.describe_consumer_groups([name])[name]
        group: ConsumerGroupDescription = result(f"describe group {name}", future)
        if group.state is ConsumerGroupState.DEAD:
            raise CommandError(f"there is no group {name}; `odradek groups list` shows them")
        return group

    def _committed(self, name: str) -> dict[Partition, int | None]:
        futures = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])
        found = result(f"offsets of group {name}", futures[name])
        return {
            (each.topic, each.partition): each.offset if each.offset >= 0 else None
            for each in found.topic_partitions or []
        }

    def _lags(self, group: ConsumerGroupDescription) -> list[PartitionLag]:
        committed = self._committed(group.group_id)
        owners = {
            (each.topic, each.partition): member
            for member in group.members
            for each in member.assignment.topic_partitions
        }
        keys = sorted({*committed, *owners})
        ends = known_offsets(self._admin, keys, OffsetSpec.latest())
        lags = []
        for key in keys:
            offset, end, member = committed.get(key), ends[key], owners.get(key)
            lags.append(
                PartitionLag(
                    topic=key[0],
                    partition=key[1],
                    committed=offset,
                    end_offset=end,
                    lag=None if offset is None or end is None else max(end - offset, 0),
                    member=member.member_id if member else "",
                    host=member.host if member else "",
                )
            )
        return lags

    def _changes(self, name: str, topics: Sequence[str], target: str) -> list[OffsetChange]:
        committed = self._committed(name)
        known = cluster(self._admin).topics
        for topic in topics:
            if topic not in known:
                raise CommandError(f"there is no topic {topic}; `odradek topics list` shows them")
        named = {(topic, index) for topic in topics for index in known[topic].partitions}
        keys = sorted(named if topics else committed)
        if not keys:
            raise CommandError(f"group {name} has no offsets; name the topics with --topic")
        starts = partition_offsets(self._admin, keys, OffsetSpec.earliest())
        ends = partition_offsets(self._admin, keys, OffsetSpec.latest())
        wanted = self._targets(keys, target, committed, starts, ends)
        return [
            OffsetChange(
                topic=key[0],
                partition=key[1],
                before=committed.get(key),
                after=wanted[key],
            )
            for key in keys
        ]

    def _targets(
        self,
        keys: Sequence[Partition],
        target: str,
        committed: Mapping[Partition, int | None],
        starts: Offsets,
        ends: Offsets,
    ) -> Offsets:
        """The offset that each partition is set to. A shift stops at its first or last offset."""
        if _SHIFT.fullmatch(target):
            return {
                key: min(max(_offset_in(committed, key) + int(target), starts[key]), ends[key])
                for key in keys
            }

        def offsets_at(moment_ms: int) -> Offsets:
            return partition_offsets(self._admin, keys, OffsetSpec.for_timestamp(moment_ms))

        return resolve_position(target, starts, ends, offsets_at)


def _offset_in(committed: Mapping[Partition, int | None], key: Partition) -> int:
    """The committed offset. Raises CommandError if there is none, as Kafka's tool does."""
    offset = committed.get(key)
    if offset is None:
        raise CommandError(f"nothing is committed in {key[0]}-{key[1]}, so it cannot be shifted")
    return offset


def _state_of(group: ConsumerGroupDescription) -> str:
    """The state in lower case: preparing_rebalance for librdkafka's PREPARING_REBALANCING."""
    return str(group.state.name).lower().replace("rebalancing", "rebalance")


def _cells(item: PartitionLag | OffsetChange) -> list[str]:
    return ["-" if value is None else str(value) for value in asdict(item).values()]
