"""A batch that is built record by record."""

from odradek.protocol.growing_batch import GrowingBatch
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch

RECORDS = [
    Record(b"k", b"v" * size, 1_000 + (size * 7) % 40, (("h", None), ("i", b"x" * size)))
    for size in range(60)
]


def test_it_has_the_bytes_of_a_batch_that_is_built_at_once() -> None:
    batch = GrowingBatch(1 << 20)
    assert all(batch.add(record) for record in RECORDS)
    assert batch.build() == build_batch(RECORDS)


def test_it_takes_records_up_to_its_limit() -> None:
    for limit in range(100, 400):
        batch = GrowingBatch(limit)
        taken = [record for record in RECORDS if batch.add(record)]
        built = batch.build()
        assert taken == RECORDS[: len(taken)]
        assert built == build_batch(taken)
        assert len(built) <= limit < len(build_batch(RECORDS[: len(taken) + 1]))


def test_a_record_that_is_larger_is_alone() -> None:
    batch = GrowingBatch(10)
    assert batch.add(RECORDS[5])
    assert not batch.add(RECORDS[0])
    assert batch.record_count == 1
    assert [record.value for record in read_records(batch.build())] == [RECORDS[5].value]
