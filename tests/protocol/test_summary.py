"""The summary counts what it compared, and tells of every difference."""

from collections.abc import Iterator

import pytest

from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.schema import Message
from tests.protocol import summary, test_kio
from tests.protocol.summary import Compared, attempt


@pytest.fixture(autouse=True)
def oracles(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """No oracles but those that a test puts in."""
    found: dict[str, object] = {}
    monkeypatch.setattr(summary, "ORACLES", found)
    return found


def test_what_was_compared_is_counted(
    oracles: dict[str, object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_kio, "SHARED", {HeartbeatRequest: [0, 3, 4]})
    oracles["kio"] = summary.by_kio
    assert summary.main() == 0
    name, messages, versions, values, differences = capsys.readouterr().out.split()[-5:]
    assert (name, messages, versions, differences) == ("kio", "1", "3", "0")
    assert int(values) >= 3


def test_every_difference_is_told_and_ends_in_an_exit_code(
    oracles: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    def check(message: type[Message], version: int) -> int:
        raise ValueError(f"{version} is odd") if version % 2 else AssertionError

    def oracle() -> Iterator[Compared]:
        for version in range(3):
            yield Compared("Heartbeat", version, 2, attempt(check, HeartbeatRequest, version)[1])

    oracles["one that is never content"] = oracle
    assert summary.main() == 1
    row, *told = capsys.readouterr().out.splitlines()[1:]
    assert row.split()[-4:] == ["1", "3", "6", "3"]
    assert told == [
        "HeartbeatRequest v0: AssertionError: ",
        "HeartbeatRequest v1: ValueError: 1 is odd",
        "HeartbeatRequest v2: AssertionError: ",
    ]


def test_an_oracle_that_cannot_be_asked_says_so(
    oracles: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    oracles["elsewhere"] = lambda: pytest.skip("no jars")
    assert summary.main() == 0
    assert "SKIPPED: no jars" in capsys.readouterr().out
