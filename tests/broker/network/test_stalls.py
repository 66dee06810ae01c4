"""After a stall of the process, requests that have arrived are served before members expire."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.broker_process import running_broker
from tests.support.wire import WireClient

GROUPS = 100  # their heartbeats take several turns of the loop
SESSION_MS = 6_000  # all groups must have been joined before: a busy machine takes seconds
HEARTBEAT_VERSION = 4


def make_coordinator(port: int) -> None:
    """Have `__consumer_offsets` made."""
    with WireClient(port) as client:
        request = FindCoordinatorRequest(key="g", key_type=0)
        while client.ask(request, FindCoordinatorResponse, 3).error_code:
            time.sleep(0.02)


def join(client: WireClient, group_id: str) -> HeartbeatRequest:
    """Join a group, as its only member. Returns its heartbeat."""
    joined = client.ask(
        JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        JoinGroupResponse,
        3,
    )
    assert joined.error_code == ErrorCode.NONE
    who = {"group_id": group_id, "generation_id": 1, "member_id": joined.member_id}
    synced = client.ask(SyncGroupRequest(**who, assignments=[]), SyncGroupResponse, 3)
    assert synced.error_code == ErrorCode.NONE
    return HeartbeatRequest(**who)


def answers(clients: Sequence[WireClient]) -> set[ErrorCode]:
    """The errors in the answers to the heartbeats under way."""
    return {
        ErrorCode(client.read_answer(HeartbeatResponse, HEARTBEAT_VERSION).error_code)
        for client in clients
    }


@pytest.mark.slow
def test_who_was_heard_from_while_the_process_stood_still_is_a_member(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with running_broker(tmp_path, settings) as broker, ExitStack() as stack:
        make_coordinator(broker.port)
        clients = [stack.enter_context(WireClient(broker.port)) for _ in range(GROUPS)]
        beats = [join(client, f"g{number}") for number, client in enumerate(clients)]
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            time.sleep(SESSION_MS / 1000 + 0.2)
            for client, beat in zip(clients, beats, strict=True):
                client.send(client.frame_of(beat, HEARTBEAT_VERSION))
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert answers(clients) == {ErrorCode.NONE}
        time.sleep(SESSION_MS / 1000 + 0.5)
        for client, beat in zip(clients, beats, strict=True):
            client.send(client.frame_of(beat, HEARTBEAT_VERSION))
        assert answers(clients) == {ErrorCode.UNKNOWN_MEMBER_ID}
        for client in clients:
            client.close()
