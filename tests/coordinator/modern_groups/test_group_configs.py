"""Settings of consumer groups: the broker's defaults and the overrides of groups."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.group_config import check_group
from odradek.coordinator.any_group.group_settings import (
    Bounds,
    ConsumerGroupSettings,
    MigrationPolicy,
)
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs


def configs(broker: dict[str, str] | None = None, **groups: dict[str, str]) -> ConsumerGroupConfigs:
    """Of groups with these overrides; `session_timeout_ms` stands for its key."""
    texts = {
        group_id: {f"consumer.{name.replace('_', '.')}": text for name, text in overrides.items()}
        for group_id, overrides in groups.items()
    }
    settings = ConsumerGroupSettings.of(BrokerConfig.from_texts(broker or {}))
    return ConsumerGroupConfigs(settings, lambda group_id: texts.get(group_id, {}))


def values(found: ConsumerGroupConfigs, group_id: str = "g") -> tuple[int, int, int]:
    return (
        found.session_timeout_ms(group_id),
        found.heartbeat_interval_ms(group_id),
        found.assignment_interval_ms(group_id),
    )


def test_the_settings_that_nobody_writes_are_kafkas() -> None:
    assert ConsumerGroupSettings.of(BrokerConfig()) == ConsumerGroupSettings()


def test_the_brokers_keys_become_settings() -> None:
    settings = ConsumerGroupSettings.of(
        BrokerConfig.from_texts(
            {
                "group.coordinator.rebalance.protocols": "classic",
                "group.consumer.session.timeout.ms": "10",
                "group.consumer.min.session.timeout.ms": "9",
                "group.consumer.max.session.timeout.ms": "11",
                "group.consumer.heartbeat.interval.ms": "3",
                "group.consumer.min.heartbeat.interval.ms": "2",
                "group.consumer.max.heartbeat.interval.ms": "4",
                "group.consumer.assignment.interval.ms": "6",
                "group.consumer.min.assignment.interval.ms": "5",
                "group.consumer.max.assignment.interval.ms": "7",
                "group.consumer.max.size": "8",
                "group.consumer.assignors": (
                    "org.apache.kafka.coordinator.group.assignor.RangeAssignor, uniform"
                ),
                "group.consumer.migration.policy": "UPGRADE",
                "group.consumer.regex.refresh.interval.ms": "10000",
            }
        )
    )
    assert settings == ConsumerGroupSettings(
        is_enabled=False,
        session_timeout_ms=10,
        session_timeout_bounds=Bounds(9, 11),
        heartbeat_interval_ms=3,
        heartbeat_interval_bounds=Bounds(2, 4),
        assignment_interval_ms=6,
        assignment_interval_bounds=Bounds(5, 7),
        max_size=8,
        assignors=("range", "uniform"),
        migration_policy=MigrationPolicy.UPGRADE,
        regex_refresh_interval_ms=10_000,
    )


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [
        ("bidirectional", True, True),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("disabled", False, False),
    ],
)
def test_a_policy_says_which_way_groups_may_go(policy: str, upgrade: bool, downgrade: bool) -> None:
    found = MigrationPolicy(policy)
    assert (found.allows_upgrade, found.allows_downgrade) == (upgrade, downgrade)


def test_a_groups_own_values_come_before_the_brokers() -> None:
    found = configs(
        g={"session_timeout_ms": "50000", "assignment_interval_ms": " 0 "},
        other={"heartbeat_interval_ms": "6000"},
    )
    assert values(found) == (50_000, 5_000, 0)
    assert values(found, "other") == (45_000, 6_000, 1_000)
    assert values(found, "nobody") == (45_000, 5_000, 1_000)
    assert list(found.warnings(["g", "other", "nobody"])) == []


def test_a_change_of_an_override_applies_at_the_next_lookup() -> None:
    overrides: dict[str, str] = {}
    found = ConsumerGroupConfigs(ConsumerGroupSettings(), lambda group_id: overrides)
    assert values(found) == (45_000, 5_000, 1_000)
    overrides["consumer.assignment.interval.ms"] = "7"
    assert values(found) == (45_000, 5_000, 7)
    overrides.clear()
    found.update(ConsumerGroupSettings(assignment_interval_ms=9))
    assert values(found) == (45_000, 5_000, 9)


@pytest.mark.parametrize(
    ("text", "counts"), [("1", 45_000), ("-1", 45_000), ("0", 45_000), ("60001", 60_000)]
)
def test_the_nearest_bound_applies_to_a_value_outside_the_bounds(text: str, counts: int) -> None:
    found = configs(g={"session_timeout_ms": text})
    assert values(found) == (counts, 5_000, 1_000)
    assert list(found.warnings(["g"])) == [
        f"group g: consumer.session.timeout.ms={text} is not within the broker's bounds "
        f"45000 to 60000; {counts} applies"
    ]


def test_an_override_that_is_not_a_number_is_ignored() -> None:
    found = configs(g={"heartbeat_interval_ms": "often", "session_timeout_ms": "9" * 30})
    assert values(found) == (45_000, 5_000, 1_000)
    assert [line.split(" is ")[0] for line in found.warnings(["g"])] == [
        f"group g: consumer.session.timeout.ms={'9' * 30}",
        "group g: consumer.heartbeat.interval.ms=often",
    ]


def test_a_session_timeout_below_the_heartbeat_interval_gives_a_warning() -> None:
    bounds = {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "9000",
    }
    found = configs(bounds, g={"session_timeout_ms": "5000"})
    assert values(found) == (5_000, 5_000, 1_000)
    (line,) = found.warnings(["g"])
    assert "(5000) is not greater than its consumer.heartbeat.interval.ms (5000)" in line


def test_an_override_that_passes_the_check_applies_as_written() -> None:
    """What IncrementalAlterConfigs lets pass is not bent afterwards."""
    for text in ("44999", "45000", "52000", "60000", "60001"):
        found = configs(g={"session_timeout_ms": text})
        try:
            check_group(BrokerConfig(), {"consumer.session.timeout.ms": text})
        except ConfigError:
            assert list(found.warnings(["g"])) != []
        else:
            assert found.session_timeout_ms("g") == int(text)
