"""Decisions on config overrides: what is written, what is refused, and what it takes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigChange,
    ConfigResource,
    ConfigRules,
    alter_configs,
)
from odradek.coordinator.metadata.config_settings import config_rules
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.outcome import Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
)
from tests.support.metadata import NODE, Metadata

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
OURS = ConfigResource(ConfigResourceType.BROKER, str(NODE))
ALL = ConfigResource(ConfigResourceType.BROKER, "")
GROUP = ConfigResource(ConfigResourceType.GROUP, "g")
METRICS = ConfigResource(ConfigResourceType.CLIENT_METRICS, "m")
SET, DELETE, APPEND, SUBTRACT = AlterOperation
RULES = config_rules(BrokerConfig())


def wish(
    resource: ConfigResource, *changes: tuple[str, int, str | None], replaces: bool = False
) -> Alteration:
    return Alteration(
        resource=resource,
        changes=[ConfigChange(*change) for change in changes],
        replaces=replaces,
    )


class Configs(Metadata):
    """Metadata with a topic, and the overrides on it."""

    def __init__(self, *, eligible_leaders: bool = False, **overrides: str) -> None:
        super().__init__()
        configs = {name.replace("_", "."): text for name, text in overrides.items()}
        self.create(NewTopic(name="t", configs=configs))
        if eligible_leaders:
            self.set_level("eligible.leader.replicas.version", 1)

    def set_level(self, feature: str, level: int) -> None:
        record = FeatureLevelRecord(name=feature, feature_level=level)
        self.commit(Outcome(reply=None, records=(self.state.features.versioned(record),)))

    def alter(
        self, *wishes: Alteration, rules: ConfigRules = RULES, validate_only: bool = False
    ) -> dict[ConfigResource, ApiError | None]:
        outcome = alter_configs(self.state, wishes, rules, validate_only=validate_only)
        return self.commit(outcome)

    def written(self) -> list[tuple[str, str | None]]:
        values = [record.value for record in self.last_records]
        return [(one.name, one.value) for one in values if isinstance(one, ConfigRecord)]

    def of(self, resource: ConfigResource) -> dict[str, str]:
        return dict(self.state.configs.of(ConfigResourceType(resource.kind), resource.name))


def refusal(reply: dict[ConfigResource, ApiError | None]) -> ErrorCode:
    [error] = reply.values()
    assert error is not None
    return error.code


def test_an_override_is_set_as_it_was_written() -> None:
    configs = Configs()
    assert configs.alter(wish(TOPIC, ("retention.ms", SET, " 5 "))) == {TOPIC: None}
    assert configs.of(TOPIC) == {"retention.ms": " 5 "}
    assert configs.restarted().state.configs.of_topic("t") == {"retention.ms": " 5 "}


def test_a_topics_override_that_stays_the_same_is_not_written_again() -> None:
    configs = Configs(retention_ms="5")
    configs.alter(wish(TOPIC, ("retention.ms", SET, "5"), ("flush.ms", DELETE, None)))
    assert configs.written() == []


def test_a_brokers_setting_is_written_even_if_it_stays_the_same() -> None:
    configs = Configs()
    for _ in range(2):
        configs.alter(wish(OURS, ("log.retention.ms", SET, "5"), ("made.up", DELETE, None)))
        assert configs.written() == [("log.retention.ms", "5"), ("made.up", None)]


def test_what_a_replacement_does_not_name_is_taken_back() -> None:
    configs = Configs(retention_ms="5", flush_ms="6")
    configs.alter(wish(TOPIC, ("flush.ms", SET, "7"), replaces=True))
    assert configs.of(TOPIC) == {"flush.ms": "7"}
    configs.alter(wish(TOPIC, replaces=True))
    assert configs.of(TOPIC) == {}


def test_validating_only_writes_nothing() -> None:
    configs = Configs()
    reply = configs.alter(wish(TOPIC, ("retention.ms", SET, "5")), validate_only=True)
    assert reply == {TOPIC: None}
    assert configs.last_records == ()


def test_a_resource_is_changed_whole_or_not_at_all() -> None:
    configs = Configs()
    reply = configs.alter(
        wish(TOPIC, ("retention.ms", SET, "5"), ("segment.ms", SET, "0")),
        wish(OURS, ("log.retention.ms", SET, "5")),
    )
    assert reply[TOPIC] is not None
    assert reply[OURS] is None
    assert configs.written() == [("log.retention.ms", "5")]


@pytest.mark.parametrize(
    ("current", "operation", "value", "then"),
    [
        (None, APPEND, "compact", "delete,compact"),
        ("compact", APPEND, "compact,delete", "compact,delete"),
        ("compact,delete", SUBTRACT, "compact", "delete"),
        ("compact", SUBTRACT, "delete", "compact"),
        ("compact", SUBTRACT, "compact", ""),
        ("", APPEND, "delete", "delete"),
    ],
)
def test_lists_grow_and_shrink(
    current: str | None, operation: AlterOperation, value: str, then: str
) -> None:
    configs = Configs() if current is None else Configs(cleanup_policy=current)
    assert configs.alter(wish(TOPIC, ("cleanup.policy", operation, value))) == {TOPIC: None}
    assert configs.of(TOPIC) == {"cleanup.policy": then}


def test_a_list_that_is_not_set_grows_from_kafkas_default_not_the_brokers() -> None:
    rules = config_rules(BrokerConfig.from_texts({"log.cleanup.policy": "compact"}))
    configs = Configs()
    configs.alter(wish(TOPIC, ("cleanup.policy", SUBTRACT, "compact")), rules=rules)
    assert configs.of(TOPIC) == {"cleanup.policy": "delete"}


def test_a_list_without_a_default_grows_from_nothing() -> None:
    configs = Configs()
    configs.alter(wish(OURS, ("early.start.listeners", APPEND, "A,B")))
    assert configs.of(OURS) == {"early.start.listeners": "A,B"}


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (TOPIC, "retention.ms"),
        (TOPIC, "no.such.key"),
        (OURS, "log.retention.ms"),
        (METRICS, "metrics"),
        (GROUP, "share.auto.offset.reset"),
    ],
)
def test_only_lists_of_topics_and_brokers_are_appended_to(
    resource: ConfigResource, name: str
) -> None:
    for operation in (APPEND, SUBTRACT):
        reply = Configs().alter(wish(resource, (name, operation, "1")))
        assert refusal(reply) is ErrorCode.INVALID_CONFIG


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc"), min_size=1))
def test_what_was_appended_can_be_subtracted(have: list[str], more: list[str]) -> None:
    configs = Configs()
    key = "early.start.listeners"
    new = [item for item in dict.fromkeys(more) if item not in have]
    configs.alter(wish(OURS, (key, SET, ",".join(dict.fromkeys(have)))))
    before = configs.of(OURS)
    configs.alter(wish(OURS, (key, APPEND, ",".join(more))))
    configs.alter(wish(OURS, (key, SUBTRACT, ",".join(new))))
    assert configs.of(OURS) == before


@pytest.mark.parametrize(
    ("resource", "change", "code"),
    [
        (TOPIC, ("no.such.key", SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC._replace(name="u"), ("flush.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC._replace(name="u v"), ("flush.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC._replace(name=""), ("flush.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (OURS._replace(name="7"), ("made.up", SET, "1"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (GROUP, ("no.such.key", SET, "1"), ErrorCode.INVALID_CONFIG),
        (GROUP._replace(name=""), ("no.such.key", SET, "1"), ErrorCode.INVALID_REQUEST),
        (METRICS, ("no.such.key", SET, "1"), ErrorCode.INVALID_REQUEST),
        (METRICS, ("match", SET, "color=red"), ErrorCode.INVALID_CONFIG),
        (METRICS._replace(name=""), ("metrics", SET, "*"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_legal_is_refused(
    resource: ConfigResource, change: tuple[str, int, str], code: ErrorCode
) -> None:
    configs = Configs()
    assert refusal(configs.alter(wish(resource, change))) is code
    assert configs.written() == []


def test_a_value_that_no_record_of_kafka_holds_is_refused() -> None:
    configs = Configs(leader_replication_throttled_replicas=",".join(["0:0"] * 8000))
    key = "leader.replication.throttled.replicas"
    reply = configs.alter(wish(TOPIC, (key, APPEND, ",".join(f"{n}:1" for n in range(2000)))))
    assert refusal(reply) is ErrorCode.INVALID_CONFIG


def test_overrides_of_a_newer_kafka_are_in_nobodys_way() -> None:
    configs = Configs(key_of_the_future="1")
    assert configs.alter(wish(TOPIC, ("retention.ms", SET, "5"))) == {TOPIC: None}
    assert configs.of(TOPIC) == {"key.of.the.future": "1", "retention.ms": "5"}
    assert configs.alter(wish(TOPIC, ("key.of.the.future", DELETE, None))) == {TOPIC: None}
    reply = configs.alter(wish(TOPIC, ("key.of.the.future", SET, "2")))
    assert refusal(reply) is ErrorCode.INVALID_CONFIG


def test_an_operation_that_is_too_large_is_refused_whole() -> None:
    changes = [(f"made.up.{number}", SET, "1") for number in range(10_001)]
    with pytest.raises(ApiError) as caught:
        Configs().alter(wish(OURS, *changes))
    assert caught.value.code is ErrorCode.POLICY_VIOLATION


def test_with_eligible_leaders_min_insync_replicas_is_the_clusters_affair() -> None:
    configs = Configs(eligible_leaders=True)
    key = "min.insync.replicas"
    assert refusal(configs.alter(wish(OURS, (key, SET, "1")))) is ErrorCode.INVALID_CONFIG
    assert configs.alter(wish(ALL, (key, SET, "1"))) == {ALL: None}
    assert refusal(configs.alter(wish(ALL, (key, DELETE, None)))) is ErrorCode.INVALID_CONFIG
    assert refusal(configs.alter(wish(ALL, replaces=True))) is ErrorCode.INVALID_CONFIG
    assert Configs().alter(wish(OURS, (key, SET, "1"))) == {OURS: None}


def test_a_change_of_min_insync_replicas_takes_back_who_is_eligible() -> None:
    configs = Configs(eligible_leaders=True)
    key = "min.insync.replicas"
    for resource, name in ((TOPIC, "t"), (ALL, "")):
        configs.alter(wish(resource, (key, SET, "1")))
        assert configs.last_records[-1].value == ClearElrRecord(topic_name=name)


def test_log_directories_are_not_cordoned_before_the_metadata_version_that_has_it() -> None:
    configs = Configs()
    key = "cordoned.log.dirs"
    assert configs.alter(wish(OURS, (key, SET, "*"))) == {OURS: None}
    configs.set_level("metadata.version", 29)
    for change in (
        wish(OURS, (key, SET, "")),
        wish(OURS, (key, DELETE, None)),
        wish(OURS, replaces=True),
        wish(ALL, (key, SET, "*")),
    ):
        assert refusal(configs.alter(change)) is ErrorCode.INVALID_CONFIG
    configs.set_level("metadata.version", 30)
    assert configs.alter(wish(OURS, replaces=True)) == {OURS: None}
