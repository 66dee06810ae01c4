"""The work on schemas is linear in their texts, or is given up after so many steps."""

import io
import json
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from odradek.broker.registry import remote_work
from odradek.coordinator.registry import formats, schema_work
from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.formats import effort
from odradek.coordinator.registry.schema_work import (
    Describe,
    Form,
    Invalid,
    NotDoneError,
    SchemaWork,
    outcome,
)
from odradek.protocol.batch_header import TooManyRecordsError
from odradek.storage.record_walk import LONG, SHORT

DEPTHS = (8, 18, 40)
STEPS_OF_A_LETTER = 5


def avro_defaults(depth: int) -> str:
    schema: Any = {"type": "int"}
    schema = {"type": "record", "name": "R0", "fields": [{"name": "a", **schema, "default": 1}]}
    for index in range(1, depth + 1):
        fields = [
            {"name": "a", "type": schema, "default": {}},
            {"name": "b", "type": f"R{index - 1}", "default": {}},
        ]
        schema = {"type": "record", "name": f"R{index}", "fields": fields}
    return json.dumps(schema)


def avro_records(depth: int, leaf: str) -> str:
    schema: Any = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": leaf}]}
    for index in range(1, depth + 1):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{index - 1}"}]
        schema = {"type": "record", "name": f"R{index}", "fields": fields}
    return json.dumps(schema)


def json_objects(depth: int, leaf: str) -> str:
    definitions: dict[str, Any] = {"d0": {"type": leaf}}
    for index in range(1, depth + 1):
        part = {"$ref": f"#/definitions/d{index - 1}"}
        definitions[f"d{index}"] = {"type": "object", "properties": {"a": part, "b": part}}
    top = {"x": {"$ref": f"#/definitions/d{depth}"}}
    return json.dumps({"definitions": definitions, "type": "object", "properties": top})


def messages(depth: int, leaf: str, *, last: str = "") -> str:
    lines = [f"message M{i} {{ M{i - 1} a = 1; M{i - 1} b = 2; }}" for i in range(1, depth + 1)]
    return "\n".join(['syntax = "proto3";', *lines, f"message M0 {{ {leaf} a = 1; {last} }}"])


def importing(depth: int) -> str:
    return f'syntax = "proto3"; import "i.proto"; message T {{ M{depth} a = 1; }}'


def steps_of(work: Callable[[], object]) -> int:
    most = 1_000_000
    with effort.limited(most):
        work()
        return most - int(effort._LEFT.steps)


def compared(kind: str, old: str, new: str, referred: tuple[str, str] | None = None) -> list[str]:
    references: list[Mapping[str, str]] = [{"i.proto": r} for r in referred or ()] or [{}, {}]
    writer = formats.parse(kind, old, references[0], is_new=True)
    reader = formats.parse(kind, new, references[1], is_new=True)
    return formats.compatibility(kind, reader, writer)


@pytest.mark.parametrize("depth", DEPTHS)
def test_defaults_of_shared_records_are_checked_in_linear_steps(depth: int) -> None:
    text = avro_defaults(depth)
    steps = steps_of(lambda: formats.parse("AVRO", text, {}, is_new=True))
    assert steps <= STEPS_OF_A_LETTER * len(text)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    ("kind", "write", "leaves"),
    [("AVRO", avro_records, ("int", "string")), ("JSON", json_objects, ("string", "number"))],
)
def test_shared_parts_are_compared_in_linear_steps(
    kind: str, write: Callable[[int, str], str], leaves: tuple[str, str], depth: int
) -> None:
    old, new = (write(depth, leaf) for leaf in leaves)
    found: list[str] = []
    steps = steps_of(lambda: found.extend(compared(kind, old, new)))
    # Each of the reasons has a path of its own in JSON, which is written out.
    allowed = effort.MAX_REASONS * depth if kind == "JSON" else 2 * effort.MAX_REASONS
    assert steps <= STEPS_OF_A_LETTER * (len(old) + len(new)) + allowed
    assert len(found) == min(2**depth, effort.MAX_REASONS + 1)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("circle", [False, True])
def test_imported_types_are_compared_in_linear_steps(depth: int, circle: bool) -> None:
    last = f"M{depth} c = 2;" if circle else ""
    old, same = messages(depth, "int32", last=last), messages(depth, "int64", last=last)
    text = importing(depth)
    allowed = STEPS_OF_A_LETTER * (len(old) + len(same) + 2 * len(text)) + 2000
    assert steps_of(lambda: compared("PROTOBUF", text, text, (old, same))) <= allowed
    if not circle:
        new = messages(depth, "string")
        found: list[str] = []
        steps = steps_of(lambda: found.extend(compared("PROTOBUF", text, text, (old, new))))
        assert steps <= allowed + 2 * effort.MAX_REASONS
        assert len(found) == min(3 * 2**depth - 1, effort.MAX_REASONS + 1)


@pytest.mark.parametrize("count", [3, 6, 40])
def test_imported_types_that_form_circles_and_differ_are_compared(count: int) -> None:
    def circle(leaf: str) -> str:
        lines = [
            f"message M{i} {{ M{(i + 1) % count} a = 1; M{(i * 7 + 3) % count} b = 2;"
            f" {f'{leaf} l = 4;' if i == count - 1 else ''} }}"
            for i in range(count)
        ]
        return "\n".join(['syntax = "proto3";', *lines])

    text = importing(0)
    old, new = circle("int64"), circle("string")
    found: list[str] = []
    steps = steps_of(lambda: found.extend(compared("PROTOBUF", text, text, (old, new))))
    assert steps <= STEPS_OF_A_LETTER * (len(old) + len(new)) + 2 * effort.MAX_REASONS + 2000
    assert len(found) >= count


def test_a_pattern_of_names_costs_a_step_for_each_part_of_it() -> None:
    def steps_with(pattern: str) -> int:
        old = {"type": "object", "patternProperties": {pattern: {"type": "string"}}}
        new = {"type": "object", "properties": {"x": {"type": "string"}}}
        return steps_of(lambda: compared("JSON", json.dumps(old), json.dumps(new)))

    assert steps_with("a{0,900}") - steps_with("a{0,1}") >= 899  # the library may add to it


def test_first_reasons_are_those_of_all() -> None:
    reasons = [str(number) for number in range(2000)]
    assert effort.first(reasons)[:-1] == reasons[: effort.MAX_REASONS]
    assert effort.first(reasons[:1000]) == reasons[:1000]
    long = ["x" * effort.MAX_REASON_LETTERS, "y"]
    assert effort.first(long)[:-1] == long[:1]


def test_short_texts_of_much_work_are_left_to_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Describe(Form("AVRO", avro_defaults(18), (), True))
    assert work.letters < schema_work.SHORT_LETTERS
    SchemaWork().result(work)
    monkeypatch.setattr(schema_work, "_SHORT_STEPS", 100)
    with pytest.raises(NotDoneError):
        SchemaWork().result(work)
    monkeypatch.setattr(schema_work, "_MAX_STEPS", 100)
    monkeypatch.setattr(schema_work, "_MAX_STEPS_OF_A_LETTER", 0)
    assert outcome(work, Form.parsed) == Invalid(schema_work.TOO_COMPLICATED)
    monkeypatch.setattr(schema_work, "_SHORT_STEPS", 101)
    with pytest.raises(InvalidSchemaError, match="too complicated"):
        SchemaWork().result(work)


def test_the_process_gives_work_up_after_steps() -> None:
    work = Describe(Form("AVRO", avro_defaults(100), (), True))
    pickled = pickle.dumps(work)
    assert not isinstance(remote_work.do_work(pickled, limits=SHORT), Invalid)
    with pytest.raises(TooManyRecordsError):
        remote_work.do_work(pickled, limits=SHORT._replace(steps=work.letters))


def test_work_is_pickled_in_steps() -> None:
    references = tuple((f"n{number}", '"int"') for number in range(50))
    work = Describe(Form("AVRO", '"int"', references))
    taken: list[None] = []
    file = io.BytesIO()
    remote_work._Pickler(file, lambda: taken.append(None)).dump(work)
    assert pickle.loads(file.getvalue()) == work
    assert len(taken) > 2 * len(references)


class Endless:
    letters = 1

    def run(self, parse: object) -> None:
        while True:
            pass


def test_the_process_gives_work_up_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_work, "_SHORT_SECONDS", 0.01)
    monkeypatch.setattr(remote_work, "_LONG_SECONDS", 0.01)
    pickled = pickle.dumps(Endless())
    with pytest.raises(TooManyRecordsError):
        remote_work.do_work(pickled, limits=SHORT)
    assert remote_work.do_work(pickled, limits=LONG) == Invalid(schema_work.TOO_COMPLICATED)


def test_the_steps_of_one_thread_are_not_those_of_another() -> None:
    """A console parses schemas in a thread while the registry works on the loop."""

    def work() -> None:
        with effort.limited(5):
            effort.spend(5)

    with effort.limited(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        effort.spend(3)
    effort.spend(1000)
