"""`group.consumer.assignors`: the known assignors and the default."""

import pytest

from odradek.config.errors import ConfigError
from odradek.coordinator.assignors import ASSIGNORS, configured_assignors

UNIFORM_CLASS = "org.apache.kafka.coordinator.group.assignor.UniformAssignor"
RANGE_CLASS = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["uniform", "range"], ["uniform", "range"]),
        (["range", "uniform"], ["range", "uniform"]),
        (["range"], ["range"]),
        ([UNIFORM_CLASS, RANGE_CLASS], ["uniform", "range"]),
        ([RANGE_CLASS, "uniform"], ["range", "uniform"]),
    ],
)
def test_assignors_come_in_the_order_of_the_list(names: list[str], found: list[str]) -> None:
    configured = configured_assignors(names)
    assert list(configured) == found
    assert all(assignor is ASSIGNORS[name] for name, assignor in configured.items())


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["uniform", "sticky"], "sticky for configuration group.consumer.assignors: Class sticky"),
        (["Uniform"], "Class Uniform cannot be found; known assignors: uniform, range"),
        (["com.example.MyAssignor"], "Class com.example.MyAssignor cannot be found"),
        (["uniform", UNIFORM_CLASS], "uniform is listed twice"),
        (["range", "range"], "range is listed twice"),
        ([], "must not be empty"),
    ],
)
def test_an_unknown_or_repeated_assignor_is_refused(names: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        configured_assignors(names)
