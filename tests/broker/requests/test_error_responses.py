"""The response that fails a whole request, beside that of Kafka's own classes."""

from typing import Any

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.broker.requests.error_responses import error_response, response_class
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsTopic
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import Message
from tests.support.java_program import java_answers
from tests.support.messages import sample, versions_of

CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
# Of these requests Kafka's answer has more, or less, beside the error that all clients look at.
DIFFERENT = {
    ApiKey.FETCH: "Kafka repeats the id of the session",
    ApiKey.METADATA: "v13 has an error of its own, and Kafka repeats the topics beside it",
    ApiKey.ELECT_LEADERS: "the same, from v1 on",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "the same",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "the same",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "the request names topics inside directories",
    ApiKey.DESCRIBE_LOG_DIRS: "Kafka has no error in v1-2",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "Kafka repeats the users beside it",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "the request names users in two lists",
    ApiKey.ALTER_CLIENT_QUOTAS: "Kafka repeats the entities, which are lists",
    ApiKey.CREATE_DELEGATION_TOKEN: "Kafka names User:ANONYMOUS as the owner",
}
# Kafka cannot read a sample: its records are no records.
UNREAD = {ApiKey.PRODUCE}


def requests() -> list[tuple[ApiKey, int, Message]]:
    return [
        (key, version, sample(request_class(handle), version))
        for key, handle in HANDLERS.items()
        for version in versions_of(request_class(handle))
    ]


def errors_in(value: Any) -> set[int]:
    """All error codes in a response."""
    if isinstance(value, list):
        return set().union(*map(errors_in, value))
    names = getattr(value, "__struct_fields__", ())
    codes = {
        getattr(value, name) for name in names if name in ("error_code", "partition_error_code")
    }
    return codes.union(*(errors_in(getattr(value, name)) for name in names))


def comparable(value: Any) -> Any:
    """A response without texts of errors, order, and the difference between unknowns."""
    if isinstance(value, list):
        return sorted(map(comparable, value), key=repr)
    names = getattr(value, "__struct_fields__", None)
    if names is not None:
        return [
            (name, comparable(getattr(value, name))) for name in names if name != "error_message"
        ]
    return None if value in (0, -1, "", b"") else value


def test_every_version_of_every_api_can_fail() -> None:
    for key, version, request in requests():
        made = error_response(request, version, CODE, "because")
        read = response_class(type(request)).decode(made.encode(version), version)
        assert CODE in errors_in(read), f"{key.name} v{version}: {read}"


def test_a_long_response_is_made_in_steps() -> None:
    steps: list[None] = []
    topics = [DeleteTopicsTopic(name=f"t{number}", topic_id=ZERO_UUID) for number in range(500)]
    request = DeleteTopicsRequest(topics=topics, timeout_ms=1)
    error_response(request, 6, CODE, "because", lambda: steps.append(None))
    assert len(steps) == 500


@pytest.mark.java
def test_the_error_stands_where_kafka_puts_it() -> None:
    asked = [
        (key, version, request)
        for key, version, request in requests()
        if key not in DIFFERENT and version in type(request).SPEC.advertised
    ]
    lines = [
        f"{int(key)} {version} {int(CODE)} {request.encode(version).hex()}"
        for key, version, request in asked
    ]
    compared = set()
    for (key, version, request), line in zip(
        asked, java_answers("ErrorResponses.java", lines), strict=True
    ):
        if line.startswith("!"):
            assert key in UNREAD, f"{key.name} v{version}: {line}"
            continue
        theirs = response_class(type(request)).decode(bytes.fromhex(line), version)
        ours = error_response(request, version, CODE, "because")
        ours = type(ours).decode(ours.encode(version), version)
        assert comparable(ours) == comparable(theirs), f"{key.name} v{version}"
        compared.add(key)
    assert len(compared) > 40
