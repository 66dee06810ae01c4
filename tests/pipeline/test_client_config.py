"""Settings of the Kafka client among the options of Spark's source and sink."""

import pytest

from odradek.pipeline.client_config import ClientConfigError, client_config


def test_only_options_that_begin_with_kafka_are_for_the_client() -> None:
    given = {"Kafka.Bootstrap.Servers": "h:1", "subscribe": "a", "kafka.Max.Request.Size": "5000"}
    assert client_config(given) == {"bootstrap.servers": "h:1", "message.max.bytes": "5000"}


def test_settings_that_only_java_has_are_ignored_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {f"kafka.{name}": "1" for name in ("max.poll.records", "partition.assignment.strategy")}
    for _ in range(2):
        assert client_config({**given, "kafka.client.id": "c"}) == {"client.id": "c"}
    (line,) = caplog.messages
    assert "kafka.max.poll.records, kafka.partition.assignment.strategy" in line


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"kafka.sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.Handler"},
            "^kafka.sasl.login.callback.*: .*kafka.sasl.oauthbearer.method=oidc",
        ),
        ({"kafka.sasl.jaas.config": "x"}, "configuration kafka.sasl.jaas.config"),
        ({"kafka.ssl.truststore.location": "/t"}, "^kafka.ssl.truststore.type is JKS"),
    ],
)
def test_an_error_has_the_name_that_the_user_wrote(given: dict[str, str], says: str) -> None:
    with pytest.raises(ClientConfigError, match=says):
        client_config(given)
