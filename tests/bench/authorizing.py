"""Small produce requests with and without an authorizer, and with a thousand ACLs.

The requests are small, because a decision costs the same whatever a request carries. All brokers
live through the whole workload and are measured in turns, in a new order each time. Of both odradek
and Apache Kafka the brokers with a thousand ACLs are compared.
"""

import random
from contextlib import ExitStack
from pathlib import Path

from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.config.keys_authorizer import STANDARD_AUTHORIZER
from odradek.coordinator.metadata.acls import PatternType
from odradek.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from tests.bench.figures import KAFKA, ODRADEK, Figures, Results, compared
from tests.bench.over_the_wire import produce_tiny_batches
from tests.conformance.authorization.grants import entry, everything
from tests.support.broker_process import BrokerProcess, WarmedKafkaProcess
from tests.support.java_tools import why_no_java
from tests.support.wire import WireClient

ACL_COUNT = 1000
WARM_ROUNDS = 3
AUTHORIZER = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
}


def produce_authorized(scratch: Path, rounds: int, share: int) -> Results:
    """One record of 100 bytes a request; beside Kafka, no ACLs, and no authorizer."""
    directory = scratch / "authorized"
    brokers: dict[str, BrokerProcess] = {
        "open": BrokerProcess(directory / "open"),
        "authorizer": BrokerProcess(directory / "authorizer", AUTHORIZER),
        ODRADEK: BrokerProcess(directory / "acls", AUTHORIZER),
    }
    if why_no_java() is None:
        brokers[KAFKA] = WarmedKafkaProcess(directory / "kafka", AUTHORIZER)
    found: dict[str, list[Figures]] = {name: [] for name in brokers}
    with ExitStack() as stack:
        for name, broker in brokers.items():
            stack.callback(broker.stop)
            broker.start()
            if name != "open":
                add_acls(broker, 0 if name == "authorizer" else ACL_COUNT)
        order = list(brokers)
        for number in range(rounds + WARM_ROUNDS):
            random.shuffle(order)
            for name in order:
                measured = produce_tiny_batches(brokers[name], share)
                if number >= WARM_ROUNDS:
                    found[name].append(measured)
    return compared(found)


def add_acls(broker: BrokerProcess, count: int) -> None:
    """Allow everything to everyone, and add so many entries that do not apply."""
    others = [
        entry(
            ResourceType.TOPIC,
            f"other-{number}",
            AclOperation.WRITE,
            PatternType.PREFIXED if number % 2 else PatternType.LITERAL,
        )
        for number in range(count)
    ]
    request = CreateAclsRequest(creations=[*everything("*"), *others])
    with WireClient(broker.port) as client:
        answer = client.ask(request, CreateAclsResponse, 3)
    assert not any(result.error_code for result in answer.results), answer


WORKLOADS = {"produce_authorized": produce_authorized}
