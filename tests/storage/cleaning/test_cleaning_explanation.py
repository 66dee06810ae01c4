"""What is said of each segment of a compacted log agrees with what the cleaner may take."""

from pathlib import Path

from odradek.storage.cleaning.explanation import why_not_cleaned
from odradek.storage.cleaning.plan import assess
from odradek.storage.log import PartitionLog
from odradek.storage.retention_explanation import explain, retention_facts
from tests.support.crashing_files import QuickFiles
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

SIZE = len(batch_of(b"v"))
LAG_MS = 60_000


def compacted(root: Path, *ages_ms: int, **config: object) -> PartitionLog:
    """One record per segment, the last one in the active segment."""
    settings = {"cleanup_policy": ("compact",), **config}
    log = LogBox(root, files=QuickFiles(), segment_bytes=SIZE, **settings).open()
    for age_ms in ages_ms:
        put(log, b"v", timestamps=[NOW_MS - age_ms])
    return log


def explained(log: PartitionLog, checkpoint: int | None = None) -> list[str]:
    state = assess(log, checkpoint, NOW_MS)
    return [
        why_not_cleaned(
            each.segment,
            state,
            log.config,
            is_active=each.is_active,
            last_stable_offset=log.last_stable_offset,
        )
        for each in explain(retention_facts(log), NOW_MS)
    ]


def test_dirty_segments_are_due_or_wait_for_the_ratio(tmp_path: Path) -> None:
    log = compacted(tmp_path, 3, 2, 1, 0)
    clean, dirty, more, active = explained(log, checkpoint=1)
    assert clean == "it is clean: the cleaner has been here, up to offset 1"
    assert (
        dirty == more == "it is dirty, and the log is due: the cleaner takes it as soon as it can"
    )
    assert active.startswith("it is the active segment")
    clean, also_clean, dirty, _ = explained(log, checkpoint=2)
    assert clean == also_clean
    assert "but 33% of the log's bytes are" in dirty
    assert "min.cleanable.dirty.ratio (0.5)" in dirty


def test_an_open_transaction_and_young_records_keep_the_cleaner_away(tmp_path: Path) -> None:
    log = compacted(tmp_path / "open", 3)
    batch = batch_of(b"v", producer=(9, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    put(log, b"v")
    put(log, b"v")
    first, second, third, _ = explained(log)
    assert "the log is due" in first
    assert second == third == "a transaction is open from offset 1 on"
    young = compacted(
        tmp_path / "young", 2 * LAG_MS, 5, 2 * LAG_MS, 0, min_compaction_lag_ms=LAG_MS
    )
    old, new, behind, _ = explained(young)
    assert "the log is due" in old
    assert new == behind
    assert "younger than min.compaction.lag.ms, which is 60000 (1 minute)" in new
