"""Archives of values that were written with a schema registry: their fields are columns."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.archive.splitting.topic_schemas import RegistryChoice
from odradek.storage.log import PartitionLog
from tests.support.archives import archive_here, at, seen
from tests.support.crashing_files import QuickFiles
from tests.support.log_box import NOW_MS, LogBox, put
from tests.support.schema_registry import SchemaRegistry, avro, framed, record, schema_registry

QUICK = QuickFiles()
FIRST = record({"name": "id", "type": "long"}, {"name": "city", "type": ["null", "string"]})
SECOND = record(
    {"name": "id", "type": "long"},
    {"name": "city", "type": ["null", "string"]},
    {"name": "amount", "type": "double", "default": 1.5},
)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as found:
        yield found


def topic_at(root: Path, topic: str = "orders") -> PartitionLog:
    box = LogBox(root / "log", files=QUICK)
    box.directory = box.directory.with_name(f"{topic}-0")
    return box.open()


def settings_for(root: Path, registry: SchemaRegistry, **more: Any) -> ArchiveSettings:
    client: dict[str, Any] = {"url": registry.url, "max.retries": 0}
    return ArchiveSettings(
        log_directories=[root / "log"],
        archive=at(root / "archive"),
        registry=RegistryChoice(format="avro", client=client),
        until_end=True,
        **more,
    )


def rows(settings: ArchiveSettings, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of all records, by topic and offset."""
    table = seen(settings.archive).sort_by([("topic", "ascending"), ("offset", "ascending")])
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def test_columns_follow_the_schema(registry: SchemaRegistry, tmp_path: Path) -> None:
    log, settings = topic_at(tmp_path), settings_for(tmp_path, registry)
    first = registry.register("orders-value", FIRST)
    put(log, framed(first, avro(FIRST, {"id": 1, "city": "Oslo"})))
    archive_here(settings, QUICK)
    assert rows(settings, "id", "city") == [(1, "Oslo")]
    second = registry.register("orders-value", SECOND)
    put(log, framed(second, avro(SECOND, {"id": 2, "city": None, "amount": 9.5})))
    put(log, framed(first, avro(FIRST, {"id": 3, "city": "Rome"})))
    archive_here(settings, QUICK)
    assert rows(settings, "id", "city", "amount") == [
        (1, "Oslo", None),
        (2, None, 9.5),
        (3, "Rome", 1.5),  # read as the latest schema says
    ]


def test_a_value_that_cannot_be_decoded_has_a_reason(
    registry: SchemaRegistry, tmp_path: Path
) -> None:
    log, settings = topic_at(tmp_path), settings_for(tmp_path, registry, keep_value=False)
    number = registry.register("orders-value", FIRST)
    put(log, framed(number, avro(FIRST, {"id": 1, "city": None})), b"bad", framed(77, b"x"))
    summary = archive_here(settings, QUICK)
    assert (summary.total().records, summary.total().dead_letters) == (1, 2)
    [sound, bad, unknown] = rows(settings, "id", "value", "error")
    assert sound == (1, None, None)
    assert bad[:2] == (None, b"bad")
    assert bad[2]
    assert unknown == (None, framed(77, b"x"), "the registry has no schema 77")


def test_a_topic_without_a_schema_waits_for_one(registry: SchemaRegistry, tmp_path: Path) -> None:
    log, other = topic_at(tmp_path), topic_at(tmp_path, "payments")
    settings = settings_for(tmp_path, registry)
    number = registry.register("orders-value", FIRST)
    put(log, framed(number, avro(FIRST, {"id": 1, "city": None})))
    put(other, b"undecided")
    [problem] = archive_here(settings, QUICK).problems
    assert problem.startswith("payments-0: the schema of payments-value: ")
    assert rows(settings, "topic", "id") == [("orders", 1)]
    registry.register("payments-value", FIRST)
    assert archive_here(settings, QUICK).problems == []
    assert rows(settings, "topic", "offset") == [("orders", 0), ("payments", 0)]


def test_a_field_of_another_type_is_a_problem_of_its_topic(
    registry: SchemaRegistry, tmp_path: Path
) -> None:
    log, other = topic_at(tmp_path), topic_at(tmp_path, "payments")
    settings = settings_for(tmp_path, registry)
    number = registry.register("orders-value", FIRST)
    text = record({"name": "id", "type": "string"})
    other_number = registry.register("payments-value", text)
    put(log, framed(number, avro(FIRST, {"id": 1, "city": None})))
    put(other, framed(other_number, avro(text, {"id": "x"})))
    other.close(NOW_MS)
    shutil.copytree(tmp_path / "log" / "payments-0", tmp_path / "log" / "payments-1")
    problems = archive_here(settings, QUICK).problems
    why = "has a column id of type long, and the schema has id of type string"
    assert [(each[:10], why in each) for each in problems] == [
        ("payments-0", True),
        ("payments-1", True),
    ]
    assert rows(settings, "topic", "id") == [("orders", 1)]


def test_while_the_registry_fails_nothing_is_committed(
    registry: SchemaRegistry, tmp_path: Path
) -> None:
    log, settings = topic_at(tmp_path), settings_for(tmp_path, registry)
    number = registry.register("orders-value", FIRST)
    put(log, framed(number, avro(FIRST, {"id": 1, "city": None})))
    answer = registry.answer

    def fail_for_writers(path: str) -> tuple[int, dict[str, Any]]:
        registry.failure = 500 if "/ids/" in path else 0
        return answer(path)

    registry.answer = fail_for_writers  # type: ignore[method-assign] # a registry that breaks
    with pytest.raises(JobError, match="the schema registry: "):
        archive_here(settings, QUICK)
    assert rows(settings, "id") == []
    registry.answer = answer  # type: ignore[method-assign] # and is repaired
    registry.failure = 0
    archive_here(settings, QUICK)
    assert rows(settings, "id") == [(1,)]
