"""What may be mutated, and how."""

from pathlib import Path

import pytest

from tests.mutation.places import chosen_places, places_of


def mutants(source: str) -> list[str]:
    """The source with each of its mutations."""
    data = source.encode()
    return [place.mutated(data).decode() for place in places_of("storage/log.py", data)]


@pytest.mark.parametrize(
    ("source", "mutant"),
    [
        ("a < b", "(a <= b)"),
        ("(a) >= (b)", "((a) > (b))"),
        ("a is not None", "(a is None)"),
        ("a not in b", "(a in b)"),
        ("a and (b or c)", "(a or (b or c))"),
        ("not (a or b)", "(a or b)"),
        ("a if b else c", "a if (not (b)) else c"),
        ("ü.close()", "pass"),
    ],
)
def test_a_place_is_mutated(source: str, mutant: str) -> None:
    assert mutant in mutants(source)


def test_an_integer_becomes_the_next_and_the_one_before() -> None:
    assert mutants("a = 1") == ["a = 2", "a = 0"]


def test_a_function_returns_a_falsy_value_of_its_type() -> None:
    assert mutants("def f() -> bool:\n    return a") == ["def f() -> bool:\n    return False"]
    assert mutants("def f():\n    return a") == ["def f():\n    return None"]


def test_the_branches_of_an_if_are_swapped_only_where_there_are_two() -> None:
    assert mutants("if a:\n    b\nelse:\n    c") == ["if (not (a)):\n    b\nelse:\n    c"]
    assert mutants("if a:\n    b") == []


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2"""',
        "logger.info(a)",
        "def f(a: b[1]) -> c[1]: ...",
        "@cached(1)\ndef f(): ...",
        "assert a < b",
        'f"{a + 1}"',
        "def f():\n    return None",
        "a = True",
    ],
)
def test_what_no_test_could_notice_is_left_alone(source: str) -> None:
    assert mutants(source) == []


def test_the_choice_stays_when_files_move_and_lines_change(tmp_path: Path) -> None:
    source = "def f():\n    if a < 1 and not b:\n        c()\n    return d if e else 7\n"
    for root, path, text in [
        ("old", "broker/log.py", source),
        ("new", "storage/log.py", "\n" + source),
    ]:
        (tmp_path / root / path).parent.mkdir(parents=True)
        (tmp_path / root / path).write_text(text)
    old = chosen_places(tmp_path / "old", seed=1, count=5)
    new = chosen_places(tmp_path / "new", seed=1, count=5)
    assert len({place.kind for place in old}) == 5
    assert [place.identity for place in new] == [place.identity for place in old]
    assert [place.identity for place in chosen_places(tmp_path / "old", seed=2, count=5)] != [
        place.identity for place in old
    ]
