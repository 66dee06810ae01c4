"""Consumer groups made by Apache Kafka's consumers, and what a broker says of them.

`python -m tests.support.kafka_groups` makes tests/golden/groups anew: the log of
`__consumer_offsets` and the answer of ConsumerGroupDescribe, to be met by whoever reads the log.
"""

import shutil
import tempfile
from pathlib import Path

from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess
from tests.support.config_requests import alter_configs_request
from tests.support.consumer_members_java import JavaMembers
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "groups"
LOG_FILE = GOLDEN / "00000000000000000000.log"
DESCRIBED_FILE = GOLDEN / "consumer_group_describe.v1.bin"

GROUPS = ("mixed", "left", "lost", "changed")
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
DESCRIBE_VERSION = 1

# While a group's dead are put out. Afterwards the broker's timeout counts: whoever is away then is
# still a member when the next broker is asked, on a slow machine, too.
SHORT_SESSION_MS = 6000
GROUP_RESOURCE = 32


# While Kafka starts: the groups are being loaded, or not yet.
def describe(broker: BrokerProcess) -> ConsumerGroupDescribeResponse:
    """What the broker says of the groups."""
    request = ConsumerGroupDescribeRequest(
        group_ids=list(GROUPS), include_authorized_operations=False
    )
    with WireClient(broker.port) as client:
        return client.ask(request, ConsumerGroupDescribeResponse, DESCRIBE_VERSION)


def in_order(answer: ConsumerGroupDescribeResponse) -> dict[str, object]:
    """The answer without the order of lists, which is that of Java's hash tables."""
    return {group.group_id: _plain(group) for group in answer.groups}


def _plain(group: ConsumerGroupDescribeGroup) -> dict[str, object]:
    members = {
        member.member_id: (
            member.instance_id,
            member.rack_id,
            member.member_epoch,
            member.client_id,
            member.client_host,
            sorted(member.subscribed_topic_names),
            member.subscribed_topic_regex,
            member.member_type,
            *(
                {topic.topic_name: (topic.topic_id, sorted(topic.partitions)) for topic in topics}
                for topics in (
                    member.assignment.topic_partitions,
                    member.target_assignment.topic_partitions,
                )
            ),
        )
        for member in group.members
    }
    return {
        "error": (group.error_code, group.error_message),
        "state": (group.group_state, group.group_epoch, group.assignment_epoch),
        "assignor": group.assignor_name,
        "operations": group.authorized_operations,
        "members": members,
    }


def make_groups(broker: BrokerProcess) -> ConsumerGroupDescribeResponse:
    """Have consumers make four groups, and the broker say what they are.

    mixed    a static member by names, one by expression, one that died and was put out
    left     a static member that is away for a while
    lost     nobody any more
    changed  a member that gave up partitions to another one
    """
    create_topics(broker)
    set_session_timeout(broker, "mixed", SHORT_SESSION_MS)
    with JavaMembers(broker.bootstrap) as members:
        with JavaMembers(broker.bootstrap) as victims:
            victims.join("victim", "mixed", topics="orders")
            members.join(
                "names",
                "mixed",
                topics="orders,payments",
                group_instance_id="shop",
                client_rack="r1",
                group_remote_assignor="range",
            )
        members.join("regex", "mixed", regex="(pay|ord).*")
        members.join("away", "left", topics="payments", group_instance_id="till")
        members.commit("away", 7)
        members.close("away", stays=True)
        members.join("leaver", "lost", topics="orders")
        members.commit("leaver", 3)
        members.close("leaver", stays=False)
        members.join("first", "changed", topics="orders,payments")
        members.join("second", "changed", topics="orders")
        members.wait_for("second", 2)
        wait_until(lambda: is_settled(describe(broker)))
        set_session_timeout(broker, "mixed", None)
        members.commit("names", 11)
        return describe(broker)


def create_topics(broker: BrokerProcess) -> None:
    """orders has three partitions, payments two, and something else nobody reads."""
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsTopic(
                name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
            )
            for name, count in (("orders", 3), ("payments", 2), ("refunds", 1))
        ],
        timeout_ms=30_000,
    )
    with WireClient(broker.port) as client:
        answer = client.ask(request, CreateTopicsResponse, 7)
    assert not any(topic.error_code for topic in answer.topics), answer


def set_session_timeout(broker: BrokerProcess, group: str, timeout_ms: int | None) -> None:
    """Of one group, from the next heartbeats on. None: that of the broker."""
    text = None if timeout_ms is None else str(timeout_ms)
    request = alter_configs_request(GROUP_RESOURCE, group, {"consumer.session.timeout.ms": text})
    with WireClient(broker.port) as client:
        answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
    assert not answer.responses[0].error_code, answer


def is_settled(answer: ConsumerGroupDescribeResponse) -> bool:
    """Whether the dead are gone, and the rest has what it shall have."""
    groups = {group.group_id: group for group in answer.groups}
    whole = all(groups[name].group_state == "Stable" for name in ("mixed", "changed"))
    return whole and len(groups["mixed"].members) == 2


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        broker = ApacheKafkaProcess(Path(directory), SETTINGS)
        broker.start()
        try:
            answer = make_groups(broker)
        finally:
            broker.stop()
        GOLDEN.mkdir(exist_ok=True)
        shutil.copy(broker.data / "__consumer_offsets-0" / LOG_FILE.name, LOG_FILE)
        DESCRIBED_FILE.write_bytes(answer.encode(DESCRIBE_VERSION))


if __name__ == "__main__":
    main()
