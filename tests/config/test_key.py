"""How the text of a value is read, checked and shown: Java's rules."""

from typing import Annotated

import pytest

from odradek.config.broker_config import SERVED_KEYS
from odradek.config.broker_keys import broker_keys, unused_keys
from odradek.config.errors import ConfigError
from odradek.config.key import ConfigType, Key, KeyModel
from odradek.config.key import key as declare
from odradek.config.key_table import read_table
from odradek.config.topic_config import TOPIC_KEYS


def a_key(type_: ConfigType, **rules: object) -> Key:
    return Key("some.key", type_, None, "")._replace(**rules)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " +7\t", 7),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.INT, "00000000000000000060000", 60000),
        (ConfigType.INT, "-0", 0),
        (ConfigType.LONG, "-" + "0" * 5000 + "7", -7),
        (ConfigType.LONG, "0" * 5000, 0),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.DOUBLE, "5", 5.0),
        (ConfigType.DOUBLE, ".5d", 0.5),
        (ConfigType.LIST, "a , b,c", ("a", "b", "c")),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, "b,a,b", ("b", "a")),
        (ConfigType.LIST, "a\t\v,\f\r\nb c", ("a", "b c")),
        # In linear time: 200,000 times more steps would take minutes.
        (ConfigType.LIST, "a" + " " * 200_000 + "b", ("a" + " " * 200_000 + "b",)),
        (ConfigType.DOUBLE, "0" * 200_000 + "1.50", 1.5),
        (ConfigType.STRING, "  a b  ", "a b"),
        (ConfigType.CLASS, "org.example.Thing", "org.example.Thing"),
    ],
)
def test_a_text_becomes_a_value(type_: ConfigType, text: str, value: object) -> None:
    parsed = a_key(type_).parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.BOOLEAN, "1"),
        (ConfigType.INT, ""),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, "0x10"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.SHORT, "-32769"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, "9" * 5000),
        (ConfigType.LONG, "0" * 5000 + "x"),
        (ConfigType.LONG, "0" * 30 + "9223372036854775808"),
        (ConfigType.DOUBLE, "1_0.0"),
        (ConfigType.DOUBLE, "half"),
        (ConfigType.DOUBLE, "1" * 200_000 + "x"),
        (ConfigType.LIST, "a,,b"),
        (ConfigType.LIST, "a,"),
    ],
)
def test_a_text_that_is_no_value_is_refused(type_: ConfigType, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        a_key(type_).parse(text)
    assert "Invalid value" in str(caught.value)
    assert "some.key" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("log.segment.bytes", "1048575", "must be a whole number from 1048576 to 2147483647"),
        ("offsets.topic.replication.factor", "0", "must be a whole number from 1 to 32767"),
        ("log.cleaner.min.cleanable.ratio", "1.1", "must be a number from 0 to 1"),
        ("group.share.max.size", "1001", "must be a whole number from 1 to 1000"),
        ("compression.gzip.level", "0", "must be one of: -1, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("compression.type", "GZIP", "must be one of: uncompressed, zstd, lz4, snappy, gzip"),
        ("log.cleanup.policy", "keep", "must be a comma-separated list of any of: compact, delete"),
        ("log.dirs", " ", "must be a comma-separated list of one or more of: non-empty items"),
        ("auto.create.topics.enable", "on", "must be true or false"),
        ("group.consumer.migration.policy", "sideways", "must be one of: bidirectional, disabled"),
        ("remote.log.storage.manager.class.name", "", "must not be empty"),
    ],
)
def test_a_refusal_says_what_is_allowed(name: str, text: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        broker_keys()[name].parse(text)
    message = str(caught.value)
    shown = text.strip()
    assert message.startswith(f"Invalid value {shown} for configuration {name}: {allowed}")
    assert "\n" not in message


def test_a_choice_in_any_case_is_accepted_where_kafka_accepts_it() -> None:
    assert broker_keys()["group.consumer.migration.policy"].parse("Upgrade") == "Upgrade"


@pytest.mark.parametrize("text", ["*", "", "0:1", "0:1,12:3", " 0:1 , 12:3 "])
def test_throttled_replicas_are_a_star_or_pairs(text: str) -> None:
    TOPIC_KEYS["leader.replication.throttled.replicas"].parse(text)


@pytest.mark.parametrize("text", ["a", "0", "0:1,*", "0:-1", "0:1:2"])
def test_other_throttled_replicas_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"must be \* or a list of partition:broker"):
        TOPIC_KEYS["follower.replication.throttled.replicas"].parse(text)


def test_a_password_is_never_shown() -> None:
    key = a_key(ConfigType.PASSWORD)._replace(one_of=("a",))
    with pytest.raises(ConfigError) as caught:
        key.parse("hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_model_hides_its_passwords() -> None:
    class Keys(KeyModel):
        key_store_password: Annotated[str | None, ConfigType.PASSWORD] = declare(None, "A secret.")
        key_store_location: Annotated[str, ConfigType.STRING] = declare("", "No secret.")

    shown = repr(Keys(key_store_password="hush", key_store_location="/k"))
    assert shown == "Keys(key_store_password='[hidden]', key_store_location='/k')"
    assert "key_store_password=None" in repr(Keys())


def test_a_value_with_line_breaks_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError) as caught:
        a_key(ConfigType.INT).parse("1\n2")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
        (7, "7"),
        ("x", "x"),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1000.0, "1000.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012, "1.2E-4"),
        (12345678.0, "1.2345678E7"),
        (1e7, "1.0E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_a_value_is_shown_as_java_shows_it(value: object, text: str | None) -> None:
    assert a_key(ConfigType.STRING).render(value) == text


def test_a_table_row_holds_all_that_a_key_is() -> None:
    keys = read_table(
        "a.b DOUBLE 0.2 0..0.5 internal\n    One.\n"
        "c.d LIST x,y x|y|z not-empty\n    Two.\n"
        "e.f STRING null any-case ok|fine\n    Three.\n"
    )
    assert keys["a.b"] == Key("a.b", ConfigType.DOUBLE, 0.2, "One.", ge=0, le=0.5, internal=True)
    assert keys["c.d"].default == ("x", "y")
    assert keys["c.d"].not_empty
    assert keys["e.f"].default is None
    assert keys["e.f"].parse("OK") == "OK"


def test_every_key_has_one_line_of_help() -> None:
    for key in [*broker_keys().values(), *TOPIC_KEYS.values()]:
        assert 10 <= len(key.doc) <= 100, key
        assert key.doc.endswith("."), key


def test_no_key_is_both_used_and_unused() -> None:
    assert not SERVED_KEYS.keys() & unused_keys().keys()
