"""Reads something of many segments, one after the other, without an attempt for each of them.

Inside an attempt (NonBlockingReads) the first segment whose files must be read from disk ends it,
and the next attempt begins again at the first segment. So WouldWaitError also has the reads that
the segments after it need.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from odradek.protocol.batch_header import CorruptRecordError

from .files import WouldWaitError, combine
from .segment import Segment
from .segment_list import SegmentList

T = TypeVar("T")

MAX_AHEAD = 32  # segments: each needs a few reads, and may need descriptors


def read_each(
    segments: Sequence[Segment] | SegmentList, read: Callable[[Segment], T], first: int = 0
) -> Iterator[tuple[Segment, T]]:
    """Yield each segment from index `first` on with what `read` returns of it.

    Raises what `read` raises.
    """
    for index in range(first, len(segments)):
        segment = segments[index]
        try:
            result = read(segment)
        except WouldWaitError as error:
            raise _reading_ahead(error, segments, index, index - first, read) from None
        yield segment, result


def _reading_ahead(
    error: WouldWaitError,
    segments: Sequence[Segment] | SegmentList,
    index: int,
    done: int,
    read: Callable[[Segment], object],
) -> WouldWaitError:
    """Add to an error of `segments[index]` what `read` lacks of the segments after it.

    `done`: how many segments before it have been read. So many are added, at most MAX_AHEAD: the
    caller may stop at any segment, and few are read in vain.
    """
    # Without tracebacks, whose frames keep files open until Python collects garbage.
    errors = [error.with_traceback(None)]
    for following in range(index + 1, min(index + 1 + min(done, MAX_AHEAD), len(segments))):
        try:
            read(segments[following])
        except WouldWaitError as lacking:
            errors.append(lacking.with_traceback(None))
        except (OSError, EOFError, CorruptRecordError):
            break  # it is raised if the caller gets there
    return combine(errors)
