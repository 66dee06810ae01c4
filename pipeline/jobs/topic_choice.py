"""Selects the partitions that a job works on: topics by name or by pattern."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipeline.jobs import JobError
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, is_internal
from odradek.storage.topic_partition import TopicPartition

if TYPE_CHECKING:  # it needs numpy, and `odradek verify` runs without
    from odradek.pipeline.reading.partitions import LogDirectories


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChoice:
    """Topics in `names`, and those whose whole name matches `pattern`; all if neither is given.

    Internal topics are selected only by name, unless `internal`.
    """

    names: Sequence[str] = ()
    pattern: str | None = None
    internal: bool = False

    def partitions(self, directories: "LogDirectories") -> list[TopicPartition]:
        """Return the selected partitions, sorted. Raises JobError if a named topic is missing."""
        found, missing = self.existing_partitions(directories)
        if missing:
            raise JobError(missing)
        return found

    def existing_partitions(
        self, directories: "LogDirectories"
    ) -> tuple[list[TopicPartition], str]:
        """Return the selected partitions, sorted, and which named topics are missing, or ""."""
        existing = directories.partitions()
        matches = self.matcher()
        where = f" in {', '.join(map(str, directories.paths))}"
        missing = self._missing({each.topic for each in existing}, where)
        return [each for each in existing if matches(each.topic)], missing

    def select(self, topics: Collection[str], where: str = "") -> list[str]:
        """Return the selected topics. Raises JobError if a named topic is missing."""
        matches = self.matcher()
        if missing := self._missing(topics, where):
            raise JobError(missing)
        return list(filter(matches, topics))

    def _missing(self, topics: Collection[str], where: str) -> str:
        missing = set(self.names).difference(topics)
        return f"no topic {', '.join(sorted(missing))}{where}" if missing else ""

    def matcher(self) -> Callable[[str], bool]:
        """Return what tells whether a topic is selected. Raises JobError."""
        if self.pattern is None and self.names:
            return lambda topic: topic in self.names
        try:
            pattern = re.compile(".*" if self.pattern is None else self.pattern)
        except re.error as error:
            raise JobError(f"invalid pattern {self.pattern!r}: {error}") from error
        return lambda topic: (
            topic in self.names
            or (
                (self.internal or not (is_internal(topic) or topic == CLUSTER_METADATA_TOPIC))
                and pattern.fullmatch(topic) is not None
            )
        )
