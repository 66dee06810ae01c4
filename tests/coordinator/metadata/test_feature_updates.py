"""Levels of features that may be finalised, and those that may not."""

import shutil
from pathlib import Path

import pytest

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.feature_updates import FeatureUpdate, UpgradeType, update_features
from odradek.coordinator.metadata.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    Features,
)
from odradek.coordinator.metadata.kraft_log import open_kraft_log
from odradek.coordinator.metadata.quorum_state import read_quorum_state
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ConfigRecord, FeatureLevelRecord
from tests.support.metadata_logs import (
    FILES,
    ME,
    controller_of,
    formatted,
    member_of,
    metadata_log,
)

BROKER = ConfigResourceType.BROKER
UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def features_at(level: int, **others: int) -> Features:
    features = Features()
    features.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
    for name, other in others.items():
        features.replay(
            FeatureLevelRecord(name=name.replace("_", ".") + ".version", feature_level=other)
        )
    return features


def change(features: Features, **updates: tuple[int, int]) -> Features:
    """The features once that is done; names as in `features_at`."""
    names = {name.replace("_", ".") + ".version": update for name, update in updates.items()}
    outcome = update_features(
        features, 1, {name: FeatureUpdate(*update) for name, update in names.items()}
    )
    for record in outcome.records:
        assert isinstance(record.value, FeatureLevelRecord)
        features.replay(record.value)
    return features


def test_a_level_of_kraft_version_that_was_written_by_mistake_is_skipped() -> None:
    features = features_at(30, kraft=1)
    assert features.in_log == {METADATA_VERSION: 30}
    assert features.finalized == {METADATA_VERSION: 30}


@pytest.mark.parametrize("level", [7, 17, 22, 29, 30, 33])
def test_the_metadata_version_rises_as_far_as_it_is_served(level: int) -> None:
    features = features_at(7)
    updates = {METADATA_VERSION: FeatureUpdate(level)}
    for record in update_features(features, 1, updates).records:
        assert isinstance(record.value, FeatureLevelRecord)
        features.replay(record.value)
    assert features.metadata_version == level


@pytest.mark.parametrize(
    ("current", "level", "how", "allowed"),
    [
        (29, 24, SAFE, True),
        (29, 23, SAFE, True),
        (29, 22, SAFE, False),
        (30, 29, SAFE, False),
        (30, 29, UNSAFE, False),
        (31, 30, SAFE, True),
        (32, 31, SAFE, False),
        (33, 32, SAFE, False),
        (33, 32, UNSAFE, False),
        (33, 34, UP, False),
        (29, 24, UNSAFE, True),
        (29, 24, UP, False),
        (22, 17, SAFE, True),
        (22, 16, SAFE, False),
        (24, 29, SAFE, False),
        (24, 34, UP, False),
        (24, 6, SAFE, False),
        (24, -1, SAFE, False),
        (24, 25, 0, False),
        (24, 25, 9, False),
    ],
)
def test_the_metadata_version_falls_only_where_no_record_has_changed(
    current: int, level: int, how: int, allowed: bool
) -> None:
    updates = {METADATA_VERSION: FeatureUpdate(level, how)}
    if allowed:
        assert len(update_features(features_at(current), 1, updates).records) == 1
        return
    with pytest.raises(ApiError) as caught:
        update_features(features_at(current), 1, updates)
    assert caught.value.code is ErrorCode.INVALID_UPDATE_VERSION


def test_the_voters_are_named_in_the_log_once_and_for_all() -> None:
    def kraft(current: int, level: int, how: int = UP) -> int:
        return update_features(
            features_at(30), current, {KRAFT_VERSION: FeatureUpdate(level, how)}
        ).reply

    assert [kraft(0, 0), kraft(0, 1), kraft(1, 1)] == [0, 1, 1]
    for how in (UP, SAFE, UNSAFE):
        with pytest.raises(ApiError):
            kraft(1, 0, how)
    with pytest.raises(ApiError):
        kraft(1, 2)


def test_what_kafka_has_finalised_can_be_taken_back() -> None:
    assert (
        change(features_at(30, transaction=2), transaction=(0, SAFE)).level("transaction.version")
        == 0
    )
    with pytest.raises(ApiError):
        change(features_at(30, transaction=2), transaction=(0, UP))
    with pytest.raises(ApiError):
        change(features_at(30), no_such=(0, UP))


@pytest.mark.parametrize(("metadata", "raised_to", "allowed"), [(22, 22, False), (22, 23, True)])
def test_eligible_leader_replicas_need_a_metadata_version(
    metadata: int, raised_to: int, allowed: bool
) -> None:
    updates = {ELR_VERSION: FeatureUpdate(1), METADATA_VERSION: FeatureUpdate(raised_to)}
    if allowed:
        assert len(update_features(features_at(metadata), 1, updates).records) == 2
        return
    with pytest.raises(ApiError) as caught:
        update_features(features_at(metadata), 1, updates)
    assert caught.value.code is ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize(("of_all", "then"), [(None, "1"), ("2", "2")])
def test_eligible_leader_replicas_settle_min_insync_replicas(
    of_all: str | None, then: str, tmp_path: Path
) -> None:
    """The cluster has a value, and no broker has one of its own."""
    data = formatted(tmp_path)
    kraft = open_kraft_log(metadata_log(data), FILES, "cluster", ME, now_ms=1_000)
    controller = controller_of(kraft)
    controller.update_features({ELR_VERSION: FeatureUpdate(0, SAFE)}, 0, validate_only=False)
    brokers = {"": of_all, "1": "3", "7": "1"}
    records = [config(broker, value) for broker, value in brokers.items()]
    kraft.journal.commit(Outcome(reply=None, records=tuple(records)), 0)

    controller.update_features({ELR_VERSION: FeatureUpdate(1)}, 0, validate_only=True)
    assert kraft.metadata.configs.of(BROKER, "7") == {"min.insync.replicas": "1"}
    controller.update_features({ELR_VERSION: FeatureUpdate(1)}, 0, validate_only=False)
    assert kraft.metadata.features.level(ELR_VERSION) == 1
    assert list(kraft.metadata.configs.records()) == [config("", then).value]


def config(broker: str, value: str | None) -> JournalRecord:
    return JournalRecord(
        ConfigRecord(
            resource_type=BROKER, resource_name=broker, name="min.insync.replicas", value=value
        )
    )


def test_one_refusal_refuses_all() -> None:
    features = features_at(24)
    with pytest.raises(ApiError):
        change(features, metadata=(25, UP), no_such=(1, UP))
    assert features.metadata_version == 24


def test_static_voters_become_voters_that_the_log_names(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(Path(__file__).parents[2] / "golden" / "metadata" / "static", data)
    me = member_of(data)

    def opened() -> Controller:
        return controller_of(open_kraft_log(metadata_log(data), FILES, "cluster", me, now_ms=1_000))

    controller = opened()
    assert controller.quorum.kraft_version == 0
    wish = {KRAFT_VERSION: FeatureUpdate(1)}
    controller.update_features(wish, 0, validate_only=True)
    assert controller.quorum.kraft_version == 0
    for _ in range(2):
        controller.update_features(wish, 0, validate_only=False)
        assert controller.quorum.kraft_version == 1
    end = controller.log.log_end_offset
    again = opened()
    assert again.quorum == controller.quorum
    assert again.quorum.voters is not None
    assert again.quorum.voters.voters[0].voter_directory_id == me.directory_id
    assert again.log.log_end_offset > end
    state = read_quorum_state(FILES, again.log.directory)
    assert state is not None
    assert state.voters is None
