"""Levels of features rise and fall in one directory of Kafka 4.2's levels as in Apache Kafka 4.4.

A copy of the directory, which odradek has formatted, is Kafka's. At every metadata.version both are
asked for all steps from there, which are not done; then both go one step up.
"""

import itertools
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.metadata.feature_updates import UpgradeType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpdateFeaturesUpdate,
)
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.java_tools import why_no_java
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    pytest.mark.skipif(against_apache_kafka(), reason="compares the two"),
]

METADATA, SHARE = "metadata.version", "share.version"
LEVELS = range(29, 34)


def test_levels_rise_and_fall_as_in_kafka(tmp_path: Path) -> None:
    found = {}
    for name in ("kafka", "odradek"):
        shared = SharedDirectory(tmp_path / name)
        shared.odradek().format("--release-version", "4.2")
        with shared.served_by(name, killed=False) as broker:
            found[name] = climb(broker)
    assert found["odradek"] == found["kafka"]
    accepted = list(found["kafka"].values()).count(ErrorCode.NONE)
    assert 20 < accepted < len(found["kafka"]) - 20


def climb(broker: BrokerProcess) -> dict[object, Any]:
    """What was answered at each level, and in the end which levels are finalised."""
    answers: dict[object, Any] = {}
    with WireClient(broker.port) as client:
        for current in LEVELS:
            for kind, level in itertools.product(UpgradeType, range(28, 35)):
                answer = update(client, METADATA, level, kind)
                answers[current, METADATA, level, kind] = answer
            for kind, level in itertools.product(UpgradeType, range(4)):
                answers[current, SHARE, level, kind] = update(client, SHARE, level, kind)
            if current + 1 in LEVELS:
                assert update(client, METADATA, current + 1, dry=False) is ErrorCode.NONE
        assert update(client, SHARE, 2, dry=False) is ErrorCode.NONE
        versions = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 3)
    levels = {one.name: one.max_version_level for one in versions.finalized_features}
    answers["finalised"] = levels
    return answers


def update(
    client: WireClient,
    name: str,
    level: int,
    kind: UpgradeType = UpgradeType.UPGRADE,
    *,
    dry: bool = True,
) -> ErrorCode:
    wanted = UpdateFeaturesUpdate(feature=name, max_version_level=level, upgrade_type=kind)
    request = UpdateFeaturesRequest(feature_updates=[wanted], validate_only=dry)
    answer = client.ask(request, UpdateFeaturesResponse, 2)
    assert bool(answer.error_code) == bool(answer.error_message)
    return ErrorCode(answer.error_code)
