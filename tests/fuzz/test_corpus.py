"""The corpus that fuzzing made, and every bug that it found, are replayed."""

from pathlib import Path

import pytest

from tests.fuzz.corpus import (
    DIRECTORY,
    Corpus,
    load_directory,
    read_corpus,
    save_directory,
    write_corpus,
)
from tests.fuzz.targets import TARGETS
from tests.support.hostile_bytes import peak_memory

CORPORA = {name: read_corpus(name) for name in TARGETS}
LARGEST_CORPUS_BYTES = 300_000

NAMED = [
    pytest.param(name, data, id=f"{name}: {bug}")
    for name, corpus in CORPORA.items()
    for bug, data in corpus.named.items()
]
EVERY_TARGET = pytest.mark.parametrize("name", TARGETS)


@EVERY_TARGET
def test_every_input_of_the_corpus_is_a_value_or_a_refusal(name: str) -> None:
    for data in [*TARGETS[name].seeds(), *CORPORA[name].found]:
        try:
            TARGETS[name].one_input(data)
        except Exception as error:
            error.add_note(f"the input is {data.hex()}")
            raise


@pytest.mark.parametrize(("name", "data"), NAMED)
def test_what_was_a_bug_is_none(name: str, data: bytes) -> None:
    TARGETS[name].one_input(data)


@EVERY_TARGET
def test_memory_is_in_proportion_to_the_input(name: str) -> None:
    target = TARGETS[name]
    for data in CORPORA[name].all():
        target.one_input(data)  # what is compiled at first use is not the input's doing
        allowed = target.memory_base + target.memory_per_byte * len(data)
        assert peak_memory(target.one_input, data, ()) < allowed, data.hex()


def test_there_is_a_corpus_for_every_target_and_it_is_small() -> None:
    assert {path.stem for path in DIRECTORY.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in DIRECTORY.iterdir()) < LARGEST_CORPUS_BYTES


def test_a_corpus_is_read_as_it_was_written(tmp_path: Path) -> None:
    corpus = Corpus({"a cut header": b"\0", "nothing": b""}, [b"\1\2", b"\xff"])
    write_corpus("letters", corpus, tmp_path)
    (tmp_path / "letters.txt").write_text("# a note\n" + (tmp_path / "letters.txt").read_text())
    write_corpus("letters", corpus, tmp_path)
    assert (tmp_path / "letters.txt").read_text().startswith("# a note\n")
    assert read_corpus("letters", tmp_path) == corpus
    assert list(corpus.all()) == [b"\0", b"", b"\1\2", b"\xff"]


def test_a_directory_of_inputs_is_added_to(tmp_path: Path) -> None:
    save_directory(tmp_path / "new", [b"a", b"b"], "start")
    save_directory(tmp_path / "new", [b"c"], "found")
    assert sorted(load_directory(tmp_path / "new")) == [b"a", b"b", b"c"]
