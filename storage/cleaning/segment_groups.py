"""Groups the segments that are cleaned into one new segment.

Cleaning makes segments smaller, so neighbours are merged if their present sizes fit into one
segment: bytes of records, bytes of each index, and the range of offsets.

Kafka: Cleaner.groupSegmentsBySize.
"""

from collections.abc import Callable, Sequence

from odradek.storage.index_file import MAX_RELATIVE_OFFSET

from .task import SegmentToClean

# The bytes of the offset index and of the time index of a segment.
IndexSizes = Callable[[SegmentToClean], tuple[int, int]]


def group_segments(
    segments: Sequence[SegmentToClean],
    end_offset: int,
    *,
    segment_bytes: int,
    index_bytes: int,
    index_sizes: IndexSizes,
) -> list[list[SegmentToClean]]:
    """Group segments, all below `end_offset`. Groups and their segments are in offset order."""
    groups: list[list[SegmentToClean]] = []
    room = (-1, -1, -1)
    for segment, last_offset in zip(segments, _last_offsets(segments, end_offset), strict=True):
        needs = (segment.size_bytes, *index_sizes(segment))
        left = tuple(have - need for have, need in zip(room, needs, strict=True))
        fits = groups and min(left) >= 0 and _in_range(groups[-1], segment, last_offset)
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            full = (segment_bytes, index_bytes, index_bytes)
            left = tuple(have - need for have, need in zip(full, needs, strict=True))
        room = (left[0], left[1], left[2])
    return groups


def _last_offsets(segments: Sequence[SegmentToClean], end_offset: int) -> list[int]:
    """An upper bound for the last offset of each segment, without reading the segments."""
    bases = [each.base_offset for each in segments] + [end_offset]
    return [base_offset - 1 for base_offset in bases[1:]]


def _in_range(group: list[SegmentToClean], segment: SegmentToClean, last_offset: int) -> bool:
    return not segment.size_bytes or last_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET
