"""Which partitions a job is about: topics by name or by pattern, of those that lie there."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from odradek.pipeline.reading.partitions import LogDirectories, TopicPartition
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, is_internal

from .job_error import JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChoice:
    """Topics by `names`, and those whose whole name matches `pattern`; with neither all of them.

    Internal topics are only chosen by their names.
    """

    names: Sequence[str] = ()
    pattern: str | None = None

    def partitions(self, directories: LogDirectories) -> list[TopicPartition]:
        """Those that are there, sorted. Raises JobError for a name that is not there."""
        matches = self._matcher()
        there = directories.partitions()
        missing = set(self.names) - {each.topic for each in there}
        if missing:
            places = ", ".join(map(str, directories.paths))
            raise JobError(f"no topic {', '.join(sorted(missing))} in {places}")
        return [each for each in there if each.topic in self.names or matches(each.topic)]

    def chosen(self, topics: Sequence[str]) -> list[str]:
        """The same of names that lie elsewhere. Raises JobError for a name that is not there."""
        matches = self._matcher()
        missing = set(self.names) - set(topics)
        if missing:
            raise JobError(f"no topic {', '.join(sorted(missing))}")
        return [topic for topic in topics if topic in self.names or matches(topic)]

    def _matcher(self) -> "_Matcher":
        if self.pattern is None:
            return _Matcher(None if self.names else re.compile(".*"))
        try:
            return _Matcher(re.compile(self.pattern))
        except re.error as error:
            raise JobError(f"the pattern {self.pattern!r} is none: {error}") from error


@dataclass(frozen=True, slots=True)
class _Matcher:
    pattern: re.Pattern[str] | None

    def __call__(self, topic: str) -> bool:
        if self.pattern is None or is_internal(topic) or topic == CLUSTER_METADATA_TOPIC:
            return False
        return self.pattern.fullmatch(topic) is not None
