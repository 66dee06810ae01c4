"""What the checkpoint of a stream contains."""

import json

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.source.stream_offsets import StreamOffsets, Tasks, from_json_object
from tests.pipeline.source.origins import tp

OFFSETS = {tp("b-1"): 4, tp("a-10"): 3, tp("b-0"): 2, tp("a-2"): 1}


def test_offsets_are_written_in_one_order_whatever_the_order_was() -> None:
    offsets = StreamOffsets(OFFSETS, {"b": bytes(range(16))}, Tasks(1000, None), {tp("b-1"): 2})
    made = offsets.as_json_object()
    assert json.dumps(made) == (
        '{"a": {"2": 1, "10": 3}, "b": {"0": 2, "1": 4, "topicId": "AAECAwQFBgcICQoLDA0ODw"}, '
        '"#tasks": {"maxRecordsPerPartition": 1000}, "#begins": {"b": {"1": 2}}}'
    )
    assert from_json_object(made) == offsets
    found = from_json_object(made)
    assert (found.tasks, found.begins) == (offsets.tasks, offsets.begins)


def test_offsets_without_ids_are_those_of_sparks_kafka_source() -> None:
    assert from_json_object({"a": {"0": 23}}) == StreamOffsets({tp("a-0"): 23})


def test_an_id_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not a base64 id"):
        from_json_object({"a": {"0": 23, "topicId": "x"}})


@pytest.mark.parametrize(
    "topics", [{"a": {"0": -1001}}, {"a": {"0": 5}, "#begins": {"a": {"0": -1}}}]
)
def test_an_offset_that_cannot_be_one_is_an_error(topics: dict[str, dict[str, int]]) -> None:
    with pytest.raises(ValueError, match=r"offset -\d+ of a-0"):
        from_json_object(topics)
