"""Wishes to change the quorum of one node, in both its forms."""

import pytest

from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.quorum import Quorum, QuorumMember, sole_quorum
from odradek.coordinator.metadata.voter_changes import (
    check_cluster,
    refuse_to_add,
    refuse_to_remove,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import ZERO_UUID

HOME = bytes(15) + b"\x01"
ME = QuorumMember(node_id=1, directory_id=HOME, endpoint=Endpoint("CONTROLLER", "localhost", 9093))
DYNAMIC, STATIC = sole_quorum(ME), Quorum()
INVALID, UNSUPPORTED = ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("quorum", "voter", "directory", "listeners", "code"),
    [
        (DYNAMIC, 1, HOME, ["CONTROLLER"], ErrorCode.DUPLICATE_VOTER),
        (DYNAMIC, 2, HOME, ["CONTROLLER"], UNSUPPORTED),
        (DYNAMIC, 2, HOME, ["OTHER"], INVALID),
        (DYNAMIC, -1, HOME, ["CONTROLLER"], INVALID),
        (DYNAMIC, 2, ZERO_UUID, ["CONTROLLER"], INVALID),
        (STATIC, 2, HOME, ["CONTROLLER"], UNSUPPORTED),
        (STATIC, 1, HOME, [], INVALID),
    ],
)
def test_nobody_is_added(
    quorum: Quorum, voter: int, directory: bytes, listeners: list[str], code: ErrorCode
) -> None:
    assert refuse_to_add(quorum, ME, voter, directory, listeners).code is code


@pytest.mark.parametrize(
    ("quorum", "voter", "directory", "code"),
    [
        (DYNAMIC, 1, HOME, ErrorCode.VOTER_NOT_FOUND),
        (DYNAMIC, 2, HOME, ErrorCode.VOTER_NOT_FOUND),
        (DYNAMIC, -1, HOME, INVALID),
        (DYNAMIC, 1, ZERO_UUID, INVALID),
        (STATIC, 1, HOME, UNSUPPORTED),
    ],
)
def test_nobody_is_removed(quorum: Quorum, voter: int, directory: bytes, code: ErrorCode) -> None:
    assert refuse_to_remove(quorum, ME, voter, directory).code is code


def test_a_wish_for_another_cluster_is_refused() -> None:
    check_cluster(None, "ours")
    check_cluster("ours", "ours")
    with pytest.raises(ApiError) as refusal:
        check_cluster("theirs", "ours")
    assert refusal.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
