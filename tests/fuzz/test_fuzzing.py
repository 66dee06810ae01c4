"""The fuzzers themselves: they find what is wrong, and in the targets they find nothing."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.schema import DecodeError
from tests.fuzz import fallback
from tests.fuzz.coverage import ROOT, features_of, fewest
from tests.fuzz.findings import Findings
from tests.fuzz.message_targets import read_message, selector
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.support.lengths import SEED, by_length

ENGINES = [
    "hypothesis",
    pytest.param(
        "atheris", marks=pytest.mark.skipif(not find_spec("atheris"), reason="no atheris")
    ),
]


def planted(data: bytes) -> None:
    """Reads a message; a certain value in it is a bug."""
    try:
        request = MetadataRequest.decode(data, 1)
    except DecodeError:
        return
    if request.topics is None:
        raise KeyError("no topics")


def test_the_fallback_finds_a_planted_bug(tmp_path: Path) -> None:
    findings = Findings("planted", tmp_path)
    seeds = [MetadataRequest(topics=[]).encode(1)]
    effort = fallback.fuzz(Target(planted, lambda: seeds), findings, seeds, 60, max_findings=1)
    assert len(findings) == 1
    assert effort.executions > 1
    (found,) = (path for path in tmp_path.iterdir() if path.suffix != ".txt")
    with pytest.raises(KeyError, match="no topics"):
        planted(found.read_bytes())
    story = found.with_name(found.name + ".txt").read_text()
    assert story.startswith(found.read_bytes().hex())
    assert story.endswith("KeyError: 'no topics'\n")


def test_of_the_inputs_that_fail_alike_the_smallest_is_kept(tmp_path: Path) -> None:
    findings = Findings("alike", tmp_path)
    for data in (b"abc", b"a", b"ab"):
        findings.add(data, raised(KeyError("k")))
    findings.add(b"other", raised(IndexError("i")))
    assert len(findings) == 2
    kept = [path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".txt"]
    assert sorted(kept) == [b"a", b"other"]


def raised(error: LookupError) -> LookupError:
    """The error with a traceback."""
    try:
        raise error
    except (KeyError, IndexError) as caught:
        return caught


def test_coverage_sees_into_generated_readers_whatever_the_message() -> None:
    def features(version: int, body: bytes) -> set[object]:
        data = selector(MetadataRequest) + bytes([version]) + body
        read_message(data)  # compiles them
        return {each for each in features_of(read_message, data) if "reader" in str(each[0])}

    whole = MetadataRequest(topics=[]).encode(12)
    assert features(12, whole)
    assert features(12, whole[:-1]) != features(12, whole)
    assert features(11, MetadataRequest(topics=[]).encode(11)) == features(12, whole)


def test_the_corpus_keeps_what_reaches_something_and_no_more() -> None:
    seeds = list(TARGETS["epoch_checkpoint"].seeds())
    one_input = TARGETS["epoch_checkpoint"].one_input
    kept = fewest(one_input, [*seeds, b"0\n1\n7 8\n", b"0\n1\n5 6\n", b"1\n", b"2\n"])
    assert b"1\n" in kept
    assert b"2\n" not in kept
    assert fewest(one_input, seeds, known=kept) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_the_fallback_finds_nothing(name: str, tmp_path: Path) -> None:
    findings = Findings(name, tmp_path)
    seeds = list(TARGETS[name].seeds())
    seconds = by_length(0.3, 30)
    fallback.fuzz(TARGETS[name], findings, seeds[:: by_length(15, 1)], seconds, start=SEED)
    stories = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert stories == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_command_tells_what_it_did(engine: str, tmp_path: Path) -> None:
    options = ["--seconds", "1", "--target", "controls,topic_id", "--engine", engine]
    places = ["--findings", str(tmp_path / "findings"), "--corpus", str(tmp_path / "corpus")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *options, *places],
        check=False,
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    head, controls, topic_id, last = done.stdout.splitlines()
    assert head.split() == ["target", "executions", "seconds", "corpus", "features"]
    for name, line in (("controls", controls), ("topic_id", topic_id)):
        said, executions, _, corpus, features = line.split()
        assert said == name
        assert int(executions) > 10
        assert int(corpus) > 0
        assert int(features) > 0
    assert last == "0 findings"
    assert list((tmp_path / "corpus" / "topic_id").iterdir())
