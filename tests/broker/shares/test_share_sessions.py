"""The sessions of a share group's members end with the connection on which they were opened."""

from pathlib import Path
from typing import Any

import pytest

from odradek.broker.security.session import Session
from odradek.broker.shares import shares
from odradek.broker.shares.sessions import SessionKey
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.share_partitions.changes import release
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.log_box import put
from tests.support.share_rig import GROUP, ShareRig


def connection() -> Session:
    [listener] = BrokerConfig.from_texts({"listeners": "PLAINTEXT://localhost:9092"}).open_listeners
    return Session(listener, ("127.0.0.1", 40000), "127.0.0.1")


def test_all_sessions_of_a_connection_end_with_it(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path)
    for log in rig.logs:
        put(log, b"tea")
    first, second = connection(), connection()
    rig.open_session("one", 0, connection=first)
    rig.open_session("two", 1, connection=first)
    rig.open_session("three", 0, 1, connection=second)
    assert rig.acquire("one", 0) == rig.acquire("two", 1) == [(0, 0, 1)]
    rig.shares.disconnected(first)
    assert rig.acquire("three", 0, 1) == [(0, 0, 2), (0, 0, 2)]
    assert len(rig.shares.sessions) == 1


def test_a_session_that_was_opened_again_elsewhere_stays(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path)
    put(rig.logs[0], b"tea")
    first, second = connection(), connection()
    rig.open_session("one", 0, connection=first)
    rig.open_session("one", 0, connection=second)
    assert rig.acquire("one") == [(0, 0, 1)]
    rig.shares.disconnected(first)
    assert rig.acquire("two") == []
    rig.shares.disconnected(second)
    assert rig.acquire("two") == [(0, 0, 2)]


def test_a_session_that_has_ended_does_not_end_again(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path)
    only = connection()
    rig.open_session("one", 0, connection=only)
    rig.shares.release_session(SessionKey(GROUP, "one"))
    with pytest.raises(ApiError) as refused:
        rig.shares.release_session(SessionKey(GROUP, "one"))
    assert refused.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND
    rig.shares.disconnected(only)
    rig.shares.disconnected(only)
    assert len(rig.shares.sessions) == 0


def test_a_fault_in_the_release_of_records_does_not_keep_their_member_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = ShareRig(tmp_path)
    for log in rig.logs:
        put(log, b"tea")
    rig.open_session("one", 0, 1, connection=connection())
    assert rig.acquire("one", 0, 1) == [(0, 0, 1)] * 2
    faults = [KeyError("a fault")]

    def release_or_fail(*arguments: Any) -> Any:
        if faults:
            raise faults.pop()
        return release(*arguments)

    monkeypatch.setattr(shares, "release", release_or_fail)
    key = SessionKey(GROUP, "one")
    with pytest.raises(KeyError, match="a fault"):
        rig.shares.release_session(key)
    assert rig.shares.is_releasing(*key)
    rig.shares.finish_release(key, no_step)
    assert not rig.shares.is_releasing(*key)
    assert rig.acquire("two", 0, 1) == [(0, 0, 2)]
    rig.states.loop.advance(30_000)
    assert sorted(rig.acquire("two", 0, 1)) == [(0, 0, 2), (0, 0, 3)]
