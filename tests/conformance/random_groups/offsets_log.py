"""What stands of a conversation in `__consumer_offsets`, as its compaction would leave it."""

from pathlib import Path
from typing import Any

from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from odradek.storage.log_reader import LogReader
from tests.conformance.random_groups.participants import Participants
from tests.conformance.random_groups.plain import Plain

CODEC = CoordinatorRecordCodec(RECORD_TYPES)


class OffsetsLog:
    """The one partition of the topic, in a broker's data directory; the broker may be at work."""

    def __init__(self, data: Path) -> None:
        self._reader = LogReader(data / "__consumer_offsets-0")

    def end(self) -> int:
        return self._reader.end_offset()

    def left(self, since: int, participants: Participants, plain: Plain) -> dict[str, Any]:
        """The last value of each key of the conversation's groups that has one."""
        last: dict[str, Any] = {}
        for record in self._reader.records(since):
            key = None if record.key is None else bytes(record.key)
            value = None if record.value is None else bytes(record.value)
            decoded = CODEC.decode(key, value)
            assert decoded is not None, f"a record of an unknown type at {record.offset}"
            assert decoded.key is not None
            of: Any = decoded.key
            group = of.group if hasattr(of, "group") else of.group_id
            if group.startswith(participants.tag):
                name = f"{type(decoded.key).__name__} {plain.of(decoded.key)}"
                last.pop(name, None)
                if decoded.value is not None:
                    last[name] = {
                        "version": decoded.value_version,
                        **plain.of(decoded.value),
                    }
        return last
