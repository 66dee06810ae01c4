"""How far a replay has come: a mark for each partition, in the group `odradek-replay-<job id>`.

topic, partition    the target's
offset              the next offset of the source
metadata            {"job": "00f3…", "partitions": 12, "records": 100, "done": false, "repairs": 0}

`job` is a hash of what the job replays. It cannot change. `partitions` is the number of marks with
which the job began. If fewer exist, some have expired, and their partitions would be sent again.
`repairs` is how often the archive of the partition had been repaired when its records were read.
Earlier versions did not write it.
"""

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from odradek.pipeline.jobs import JobError
from odradek.pipeline.sink.marks import Mark, MarkGroup, Place

ID_PREFIX = "odradek-replay-"


class PartitionProgress(NamedTuple):
    """All records of the source before `next_offset` are in the target.

    `content_hash` is that of what the job replays. The job began with `partitions` marks.
    """

    content_hash: str
    partitions: int
    next_offset: int = 0
    records: int = 0
    is_done: bool = False
    repairs: int = 0

    def as_mark(self, place: Place) -> Mark:
        """Return the mark to commit for it."""
        metadata = {
            "job": self.content_hash,
            "partitions": self.partitions,
            "records": self.records,
            "done": self.is_done,
            "repairs": self.repairs,
        }
        return Mark(*place, self.next_offset, json.dumps(metadata))


def first_marks(content_hash: str, places: Collection[Place]) -> list[Mark]:
    """Return the marks with which a job begins."""
    return [PartitionProgress(content_hash, len(places)).as_mark(place) for place in places]


def read_progress(
    group: MarkGroup, places: Collection[Place], **how: float
) -> dict[Place, PartitionProgress]:
    """Return the progress of those partitions that have a mark. Raises JobError, WriteError.

    `how` is for MarkGroup.read.
    """
    return {(mark.topic, mark.partition): _parse(mark) for mark in group.read(places, **how)}


def check_same_job(content_hash: str, job_id: str, found: Sequence[PartitionProgress]) -> None:
    """Raise JobError if marks of the job are missing, or if it replays something else."""
    # Checked first: `found` lacks the marks of topics that are not asked for.
    if found and found[0].content_hash != content_hash:
        raise JobError(
            f"the job {job_id} was started with other topics or another range: use the same "
            "again, or begin a new job without --job-id"
        )
    if not found or len(found) < found[0].partitions:
        raise JobError(
            f"the broker {'has forgotten a part of' if found else 'does not know'} the job "
            f"{job_id}: it had not begun, or its marks have expired (offsets.retention.minutes), "
            "or a target topic was deleted. Without --job-id a new job begins"
        )


def _parse(mark: Mark) -> PartitionProgress:
    try:
        known = json.loads(mark.metadata)
        return PartitionProgress(
            known["job"],
            known["partitions"],
            mark.offset,
            known["records"],
            known["done"],
            known.get("repairs", 0),
        )
    except (ValueError, KeyError, TypeError):
        raise JobError(
            f"offset {mark.offset} of {mark.topic}-{mark.partition} was not committed by replay: "
            f"its metadata is {mark.metadata!r}"
        ) from None
