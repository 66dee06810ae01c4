"""Which batch a task has written last, as marks of the group of the task's name.

topic, partition    each topic that the task's rows were written to, 0
offset              the id of the next batch to write
metadata            {"rows": 100, "xxh3": "00f3…", "run": "…"}: the number of rows, RowsDigest, and
                    the run of the query that has written them, or compared them since (division)
"""

import json
from collections.abc import Iterable
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


def last_batch(marks: Iterable[Mark]) -> WrittenBatch | None:
    """Return the last batch that was written, or None. Raises WriteError."""
    last = max(marks, key=lambda mark: mark.offset, default=None)
    if last is None or not last.offset:
        return None
    try:
        found = json.loads(last.metadata)
        return WrittenBatch(last.offset - 1, int(found["rows"]), found["xxh3"], found["run"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise not_of_the_sink(last) from None


def not_of_the_sink(mark: Mark) -> WriteError:
    """Return the error of a mark that cannot be understood."""
    return WriteError(
        f"offset {mark.offset} of {mark.topic}-{mark.partition} was not committed by the sink: its "
        f"metadata is {mark.metadata!r}. Something else uses the group; set "
        "'transactionalIdPrefix' and start with a new checkpoint"
    )
