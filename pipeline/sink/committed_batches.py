"""Which batch a task has written last, as marks of the group of the task's name.

topic, partition    each topic that the task's rows were written to, 0
offset              the id of the next batch to write
metadata            {"rows": 100, "xxh3": "00f3…", "run": "…"}: the number of rows, RowsDigest, and
                    the run of the query that has written them, or compared them since (division)

Release 0.1 committed one mark, for __consumer_offsets-0, with "rows" only. It is still understood.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .marks import Mark, Place
from .rows import WriteError

PLACE_IN_0_1: Place = (CONSUMER_OFFSETS_TOPIC, 0)


class CommittedBatch(NamedTuple):
    """A batch that is written. `digest` and `run` are None if release 0.1 has written it."""

    batch_id: int
    rows: int
    digest: str | None
    run: str | None = None

    def as_marks(self, places: Iterable[Place]) -> list[Mark]:
        """Return the marks to commit for it."""
        metadata = json.dumps({"rows": self.rows, "xxh3": self.digest, "run": self.run})
        return [Mark(*place, self.batch_id + 1, metadata) for place in places]

    def has_rows_of(self, other: "CommittedBatch") -> bool:
        """Whether both have the same rows, as far as is known."""
        known = None not in (self.digest, other.digest)
        return self.rows == other.rows and (not known or self.digest == other.digest)


def places_of(topics: Iterable[str]) -> list[Place]:
    """Return where the marks of a task are that writes to these topics."""
    return [(topic, 0) for topic in sorted(topics)]


def last_batch(marks: Iterable[Mark]) -> CommittedBatch | None:
    """Return the last batch that was written, or None. Raises WriteError."""
    last = max(marks, key=lambda mark: mark.offset, default=None)
    if last is None or not last.offset:
        return None
    try:
        found = json.loads(last.metadata)
        return CommittedBatch(
            last.offset - 1, int(found["rows"]), found.get("xxh3"), found.get("run")
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise not_of_the_sink(last) from None


def not_of_the_sink(mark: Mark) -> WriteError:
    """Return the error of a mark that cannot be understood."""
    return WriteError(
        f"offset {mark.offset} of {mark.topic}-{mark.partition} was not committed by the sink: its "
        f"metadata is {mark.metadata!r}. Something else uses the group; set "
        "'transactionalIdPrefix' and start with a new checkpoint"
    )
