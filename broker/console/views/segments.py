"""The segments of a partition, their indexes, and why retention and compaction have left them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint
from odradek.broker.console.paging import Page
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import NO_TIMESTAMP, CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.cleaning.explanation import why_not_cleaned
from odradek.storage.cleaning.plan import LogToClean
from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.retention_explanation import (
    LogFacts,
    SegmentFacts,
    WhyNotDeleted,
    explanations,
    segment_facts,
)
from odradek.storage.segment import Segment
from odradek.storage.time_index import TimeIndex
from odradek.storage.txn_index import ENTRY_BYTES

from .topic import described_log

AT_ONCE = 20  # segments that are looked at in one turn, if their times are known

_FILE_KINDS = (
    FileKind.LOG,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TXN_INDEX,
    FileKind.PRODUCER_SNAPSHOT,
)
_ENTRY_BYTES = {
    FileKind.OFFSET_INDEX: OffsetIndex.entry.size,
    FileKind.TIME_INDEX: TimeIndex.entry.size,
    FileKind.TXN_INDEX: ENTRY_BYTES,
}


class SegmentsRequest(Page, kw_only=True):
    """A page of the segments of a partition, the oldest first."""

    topic: str
    partition: int


class SegmentFile(View):
    """A file. That of an index of the active segment has its full size before it is filled."""

    name: str
    size_bytes: int


class SegmentView(View):
    """A segment: offsets `base_offset` to `end_offset`, which is the next one's base offset.

    `newest_timestamp_ms` is that of its newest record, or, if `is_file_time`, of its file, because
    its records have none. `why` says why it is not deleted; or that it will be, by the setting
    `deleted_by`. It is old enough at `eligible_at_ms`; null: its age does not matter. It waits for
    the segment at `waits_for`, which stays. `cleaning` says what the cleaner does with it;
    `not_cleaned_because` is the same if the cleaner cannot take it now. Both are null if the topic
    is not compacted. From `why` on all are null if the client may not DESCRIBE_CONFIGS on the
    topic: they follow from its settings.
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    is_active: bool
    newest_timestamp_ms: int | None
    is_file_time: bool
    files: list[SegmentFile]
    offset_index_entries: int
    time_index_entries: int
    aborted_transactions: int
    why: str | None = None
    deleted_by: str | None = None
    eligible_at_ms: int | None = None
    waits_for: int | None = None
    cleaning: str | None = None
    not_cleaned_because: str | None = None


class SegmentSettingsView(View):
    """The settings that decide about segments, with their values for this topic.

    `retention_check_interval_ms` is the broker's; null if the client may not DESCRIBE_CONFIGS on
    the cluster.
    """

    cleanup_policy: str
    retention_ms: int
    retention_bytes: int
    segment_bytes: int
    segment_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    delete_retention_ms: int
    retention_check_interval_ms: int | None


class SegmentsView(View):
    """A page of the segments. `cleaning` says why the log is not being cleaned now.

    It is null if the client may not DESCRIBE_CONFIGS on the topic, and so is `config`. `directory`
    is null if it may not DESCRIBE the cluster.
    """

    total: int
    log_start_offset: int
    log_end_offset: int
    directory: str | None
    config: SegmentSettingsView | None
    cleaning: str | None
    segments: list[SegmentView]


async def segments(call: Call, request: SegmentsRequest) -> SegmentsView:
    """Make a page. Needs DESCRIBE on the topic."""
    broker = call.observed.broker
    log = described_log(call, request.topic, request.partition)
    log.check_online()
    may_see = call.may_see_settings(ResourceType.TOPIC, log.topic)
    config = log.config if may_see else None
    try:
        first, end = request.first, request.first + request.limit
        found, facts = await _facts(call, log, end)
        cleaning, state = await _cleaning(call, log) if may_see else (None, None)
        # All before the page are evaluated too: a segment waits for those before it.
        answers = call.sliced(explanations(facts, broker.clock.now_ms()))
        page = list(islice(answers, first, end))
        offsets = [answer.segment.base_offset for answer in page]
        sizes = await broker.disk.run(_sizes, broker.log_manager.files, log.directory, offsets)
        views = [
            _view(log, segment, answer, state, files, may_see_settings=may_see)
            for segment, answer, files in call.sliced(
                zip(found[first:end], page, sizes, strict=True)
            )
        ]
    except (OSError, CorruptRecordError) as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name}: {error}") from error
    return SegmentsView(
        total=len(found),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        directory=str(log.directory) if call.may_on_cluster(AclOperation.DESCRIBE) else None,
        config=None if config is None else _settings(call, config),
        cleaning=cleaning,
        segments=views,
    )


def _settings(call: Call, config: TopicConfig) -> SegmentSettingsView:
    may_see = call.may_on_cluster(AclOperation.DESCRIBE_CONFIGS)
    check_interval_ms = call.observed.broker.config.log_retention_check_interval_ms
    return SegmentSettingsView(
        cleanup_policy=",".join(config.cleanup_policy),
        retention_ms=config.retention_ms,
        retention_bytes=config.retention_bytes,
        segment_bytes=config.segment_size_bytes,
        segment_ms=config.segment_ms,
        min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        max_compaction_lag_ms=config.max_compaction_lag_ms,
        delete_retention_ms=config.delete_retention_ms,
        retention_check_interval_ms=check_interval_ms if may_see else None,
    )


async def _facts(call: Call, log: PartitionLog, end: int) -> tuple[list[Segment], LogFacts]:
    """The segments of a log, and what the rules use of them.

    Of those from number `end` on only the sizes are right. Segments that are deleted meanwhile are
    left out.
    """
    reads = call.observed.broker.fetching.cold_reads
    known = list(log.segments)
    ends = [*(each.base_offset for each in known[1:]), log.log_end_offset]
    pairs = list(zip(known, ends, strict=True))
    found: list[Segment] = []
    facts: list[SegmentFacts] = []
    for start in call.sliced(iter(range(0, min(end, len(pairs)), AT_ONCE))):
        part = pairs[start : min(start + AT_ONCE, end)]
        for segment, fact in await reads.look_up(partial(_facts_of, log, part)):
            found.append(segment)
            facts.append(fact)
    for segment, end_offset in call.sliced(pairs[end:]):
        found.append(segment)
        size_bytes = segment.size_bytes
        facts.append(SegmentFacts(segment.base_offset, end_offset, size_bytes, NO_TIMESTAMP, False))
    unstable = log.producers.first_unstable_offset
    return found, LogFacts(log.config, log.log_start_offset, facts, unstable)


def _facts_of(
    log: PartitionLog, part: Iterable[tuple[Segment, int]]
) -> list[tuple[Segment, SegmentFacts]]:
    return [(segment, segment_facts(segment, end)) for segment, end in part if _is_in(log, segment)]


def _is_in(log: PartitionLog, segment: Segment) -> bool:
    """Whether a segment is still a part of the log.

    The files of another one must not be read: an index that is missing would be made again.
    """
    index = log.segments.floor_index(segment.base_offset)
    return log.is_online and index >= 0 and log.segments[index] is segment


async def _cleaning(call: Call, log: PartitionLog) -> tuple[str | None, LogToClean | None]:
    """Why the log is not cleaned now, and how dirty it is; None if it is not compacted."""
    if not log.config.compact:
        return None, None
    broker = call.observed.broker
    reads, cleaner = broker.fetching.cold_reads, broker.maintenance.cleaner
    text = await reads.look_up(partial(cleaner.why_not_cleaned, log.topic, log.partition))
    return text, await reads.look_up(partial(cleaner.assess, log))


def _view(
    log: PartitionLog,
    segment: Segment,
    answer: WhyNotDeleted,
    state: LogToClean | None,
    files: list[SegmentFile],
    *,
    may_see_settings: bool,
) -> SegmentView:
    fact = answer.segment
    cleaning = None
    if state is not None:
        cleaning = why_not_cleaned(
            fact,
            state,
            log.config,
            is_active=answer.is_active,
            last_stable_offset=log.last_stable_offset,
        )
    can_be_cleaned = state is None or fact.base_offset < state.first_uncleanable_offset
    entries = _entries(segment, files)
    view = SegmentView(
        base_offset=fact.base_offset,
        end_offset=fact.end_offset,
        size_bytes=fact.size_bytes,
        is_active=answer.is_active,
        newest_timestamp_ms=fact.newest_ms if fact.size_bytes else None,
        is_file_time=fact.is_file_time,
        files=files,
        offset_index_entries=entries[FileKind.OFFSET_INDEX],
        time_index_entries=entries[FileKind.TIME_INDEX],
        aborted_transactions=entries[FileKind.TXN_INDEX],
    )
    if may_see_settings:
        view.why = answer.text
        view.deleted_by = answer.deleted_by.value if answer.deleted_by else None
        view.eligible_at_ms = answer.eligible_at_ms
        view.waits_for = answer.waits_for
        view.cleaning = cleaning
        view.not_cleaned_because = None if can_be_cleaned else cleaning
    return view


def _entries(segment: Segment, files: Iterable[SegmentFile]) -> dict[FileKind, int]:
    """How many entries the indexes have, by the sizes of their files.

    Those of the active segment are in memory, and their files are larger.
    """
    sizes = {file.name: file.size_bytes for file in files}
    found = {
        kind: sizes.get(segment_file(segment.base_offset, kind), 0) // entry_bytes
        for kind, entry_bytes in _ENTRY_BYTES.items()
    }
    if segment.is_appendable:
        found[FileKind.OFFSET_INDEX] = segment.offset_index.entries
        found[FileKind.TIME_INDEX] = segment.time_index.entries
    return found


def _sizes(files: Files, directory: Path, offsets: Iterable[int]) -> list[list[SegmentFile]]:
    """The files of segments that exist now. Runs on a disk thread."""
    found = []
    for offset in offsets:
        of_segment = []
        for kind in _FILE_KINDS:
            path = directory / segment_file(offset, kind)
            try:
                size = files.size(path)
            except FileNotFoundError:
                continue
            of_segment.append(SegmentFile(name=path.name, size_bytes=size))
        found.append(of_segment)
    return found


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/topics/{topic}/partitions/{partition}/segments",
        summary="The segments of a partition, and why they are still there.",
        handle=segments,
        request=SegmentsRequest,
        response=SegmentsView,
    ),
)
