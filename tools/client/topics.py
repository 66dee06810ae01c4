"""`odradek topics`: list, create, describe, alter and delete topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicMetadata,
)

from odradek.tools.tables import counted, print_json, show_rows, show_table

from .admin import cluster, connect, known_offsets, report_each, result, results
from .failure import CommandError

BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition: its leader, and the offsets that it has; None: it does not answer."""

    partition: int
    leader: int
    isr: list[int]
    first_offset: int | None
    end_offset: int | None

    @property
    def offsets(self) -> int | None:
        """How many offsets it has; None if it does not answer."""
        if self.first_offset is None or self.end_offset is None:
            return None
        return self.end_offset - self.first_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic: its partitions, and the settings that are not the broker's."""

    topic: str
    partitions: list[PartitionState]
    settings: dict[str, str]


class TopicCommands:
    """The commands, on one connection. Each raises CommandError."""

    def __init__(self, bootstrap: str | None, file: Path | None) -> None:
        self._admin = connect(bootstrap, file)

    def show_all(self, *, internal: bool, as_json: bool) -> None:
        """Print the topics with the number of their partitions and offsets."""
        known = cluster(self._admin).topics
        names = sorted(name for name in known if internal or not name.startswith("__"))
        rows = [
            (name, len(partitions), _sum(each.offsets for each in partitions))
            for name, partitions in self._partitions(known, names).items()
        ]
        header = ("topic", "partitions", "offsets")
        show_rows(counted(len(rows), "topic"), header, rows, as_json=as_json)

    def create(
        self,
        names: Sequence[str],
        partitions: int | None,
        configs: Mapping[str, str],
        *,
        if_not_exists: bool,
    ) -> None:
        """Create topics."""
        count = BROKER_DEFAULT if partitions is None else partitions
        new = [NewTopic(name, count, BROKER_DEFAULT, config=dict(configs)) for name in names]
        harmless = KafkaError.TOPIC_ALREADY_EXISTS if if_not_exists else None
        report_each("create topic", "created", self._admin.create_topics(new), harmless)

    def describe(self, names: Sequence[str], *, as_json: bool) -> None:
        """Print the partitions of topics, and the settings that are not the broker's."""
        known = cluster(self._admin).topics
        for name in names:
            if name not in known:
                raise CommandError(f"there is no topic {name}; `odradek topics list` shows them")
        partitions = self._partitions(known, names)
        topics = [
            TopicState(topic=name, partitions=partitions[name], settings=self._overrides(name))
            for name in names
        ]
        if as_json:
            print_json([asdict(topic) for topic in topics])
            return
        header = ("partition", "leader", "isr", "first offset", "end offset")
        for topic in topics:
            rows = [
                ["-" if cell is None else str(cell) for cell in asdict(each).values()]
                for each in topic.partitions
            ]
            show_table(topic.topic, header, rows)
            for name, value in topic.settings.items():
                typer.echo(f"  {name}={value}")

    def alter(
        self,
        name: str,
        partitions: int | None,
        configs: Mapping[str, str],
        removed: Sequence[str],
    ) -> None:
        """Add partitions, and change settings."""
        changes = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in configs.items()
        ]
        changes += [
            ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
            for key in removed
        ]
        if changes:
            resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=changes)
            done = self._admin.incremental_alter_configs([resource])
            result(f"alter topic {name}", done[resource])
        if partitions is not None:
            futures = self._admin.create_partitions([NewPartitions(name, partitions)])
            results("add partitions to topic", futures)
        typer.echo(f"altered {name}")

    def delete(self, names: Sequence[str]) -> None:
        """Delete topics with all their records."""
        report_each("delete topic", "deleted", self._admin.delete_topics(list(names)))

    def _partitions(
        self, known: Mapping[str, TopicMetadata], names: Iterable[str]
    ) -> dict[str, list[PartitionState]]:
        """The partitions of topics, by name."""
        keys = [(name, index) for name in names for index in known[name].partitions]
        starts = known_offsets(self._admin, keys, OffsetSpec.earliest())
        ends = known_offsets(self._admin, keys, OffsetSpec.latest())
        return {
            name: [
                PartitionState(
                    partition=index,
                    leader=partition.leader,
                    isr=partition.isrs,
                    first_offset=starts[name, index],
                    end_offset=ends[name, index],
                )
                for index, partition in sorted(known[name].partitions.items())
            ]
            for name in names
        }

    def _overrides(self, name: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        entries = result(f"settings of {name}", self._admin.describe_configs([resource])[resource])
        return {
            key: entry.value
            for key, entry in sorted(entries.items())
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum; None if a count is not known."""
    known = list(counts)
    return None if None in known else sum(filter(None, known))
