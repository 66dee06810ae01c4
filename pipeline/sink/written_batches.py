"""Which batch a task has written last, as marks of the group of the task's name.

topic, partition    each topic that the task's rows were written to, 0
offset              the id of the next batch to write
metadata            {"rows": 100, "xxh3": "00f3…", "run": "…"}: the number of rows, RowsDigest, and
                    the run of the query that has written them, or compared them since (division)
"""

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from .marks import Mark, Place
from .rows import WriteError


class WrittenBatch(NamedTuple):
    """A batch that is written."""

    batch_id: int
    rows: int
    digest: str
    run: str

    def as_marks(self, places: Iterable[Place]) -> list[Mark]:
        """Return the marks to commit for it."""
        metadata = json.dumps({"rows": self.rows, "xxh3": self.digest, "run": self.run})
        return [Mark(*place, self.batch_id + 1, metadata) for place in places]

    def has_rows_of(self, other: "WrittenBatch") -> bool:
        """Whether both have the same rows."""
        return (self.rows, self.digest) == (other.rows, other.digest)


def places_of(topics: Iterable[str]) -> list[Place]:
    """Return where the marks of a task are that writes to these topics."""
    return [(topic, 0) for topic in sorted(topics)]


def last_batch(marks: Collection[Mark]) -> WrittenBatch | None:
    """Return the last batch that was written, or None. Raises WriteError."""
    return next(iter(last_batches(marks)), None)


def last_batches(marks: Collection[Mark]) -> list[WrittenBatch]:
    """Return what each mark of the last batch says, which may differ in the run. Raises WriteError.

    A task that runs again marks only the topics that it has rows for (changedRows=keep-written).
    """
    last = max((mark.offset for mark in marks), default=0)
    return [_batch_of(mark) for mark in marks if mark.offset == last > 0]


def topics_of(batch_id: int, marks: Iterable[Mark]) -> set[str]:
    """Return the topics that the rows of a batch were written to."""
    return {mark.topic for mark in marks if mark.offset == batch_id + 1}


def _batch_of(mark: Mark) -> WrittenBatch:
    try:
        found = json.loads(mark.metadata)
        return WrittenBatch(mark.offset - 1, int(found["rows"]), found["xxh3"], found["run"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise not_of_the_sink(mark) from None


def not_of_the_sink(mark: Mark) -> WriteError:
    """Return the error of a mark that cannot be understood."""
    return WriteError(
        f"offset {mark.offset} of {mark.topic}-{mark.partition} was not committed by the sink: its "
        f"metadata is {mark.metadata!r}. Something else uses the group; set "
        "'transactionalIdPrefix' and start with a new checkpoint"
    )
