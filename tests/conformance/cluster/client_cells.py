"""What each library is known to do in each script, with odradek as with Apache Kafka."""

from collections.abc import Collection, Mapping

Cell = tuple[str, str]  # script, library

LIBRARY_NAMES = {
    "java": "Java 4.4",
    "librdkafka": "librdkafka 2.16",
    "aiokafka": "aiokafka 0.14",
    "kafka-python": "kafka-python 3.0",
    "franz-go": "franz-go 1.22",
    "sarama": "sarama 1.61",
    "kafkajs": "KafkaJS 2.2",
}
TITLES = {
    "leader_killed": "a leader is killed while an idempotent producer sends",
    "coordinator_killed_while_consuming": "the coordinator of a group is killed",
    "coordinator_moved_during_a_rebalance": "the coordinator moves while a second member joins",
    "transaction_coordinator_killed": "the coordinator of a transaction is killed",
    "transaction_coordinator_moved": "it moves in the middle of a transaction",
    "coordinator_of_group_and_transaction_killed": (
        "the node that coordinates both is killed, and the transaction commits offsets"
    ),
    "leader_moved_in_a_share_session": "a leader moves in a share session",
    "rolling_restart": "every node is restarted while the client produces and consumes",
    "reads_in_its_rack": "a consumer reads from a follower in its rack",
    "too_few_in_sync": "too few replicas are in sync, and then enough again",
    "producer_cut_off": "a producer is cut off from a leader for five seconds",
    "consumer_cut_off": "a consumer is cut off from a leader and coordinator for five seconds",
}

# What an application sees beside its records; nothing, where a cell is not here.
SEEN: Mapping[Cell, Collection[str]] = {
    ("too_few_in_sync", "java"): ["NotEnoughReplicasException", "OutOfOrderSequenceException"],
    ("too_few_in_sync", "librdkafka"): ["NOT_ENOUGH_REPLICAS"],
    ("too_few_in_sync", "kafka-python"): [
        "NotEnoughReplicasError",
        "OutOfOrderSequenceNumberError",
    ],
    ("too_few_in_sync", "franz-go"): ["NOT_ENOUGH_REPLICAS"],
    ("too_few_in_sync", "sarama"): ["code-19"],
    ("too_few_in_sync", "kafkajs"): ["NOT_ENOUGH_REPLICAS"],
}

_KAFKAJS_LOSES = (
    "when one request has partitions of two leaders, and one of them leads both before the retry,"
    " the producer loses the records of the other without an error, with Apache Kafka too"
)
_NO_SHARE_GROUPS = "the library has no share groups"
# What is not compared, and why.
NOT_COMPARED: Mapping[Cell, str] = {
    ("transaction_coordinator_killed", "kafka-python"): (
        "`commit_transaction` waits forever, with Apache Kafka too"
    ),
    ("leader_killed", "kafkajs"): _KAFKAJS_LOSES,
    ("rolling_restart", "kafkajs"): _KAFKAJS_LOSES,
    ("coordinator_killed_while_consuming", "kafkajs"): (
        "the consumer stops, and its application must start it again, with Apache Kafka too"
    ),
    ("coordinator_of_group_and_transaction_killed", "kafka-python"): (
        "`send_offsets_to_transaction` waits forever, with Apache Kafka too"
    ),
    ("coordinator_of_group_and_transaction_killed", "librdkafka"): (
        "`send_offsets_to_transaction` waits forever once no node lists the dead one any more:"
        " with odradek at once, with Apache Kafka after the session of the dead node"
        " and a refresh of the metadata"
    ),
    ("coordinator_of_group_and_transaction_killed", "franz-go"): (
        "the library commits offsets of its own group only"
    ),
    ("reads_in_its_rack", "kafka-python"): (
        "the consumer asks the leader again after each answer of a follower, with Apache Kafka too"
    ),
    ("too_few_in_sync", "aiokafka"): "the producer tries until enough replicas are in sync",
    **{
        ("leader_moved_in_a_share_session", library): _NO_SHARE_GROUPS
        for library in ("aiokafka", "kafka-python", "sarama", "kafkajs")
    },
}

# In `make test`; the others are in `make long`.
KEPT_SHORT: Collection[Cell] = {
    (script, library)
    for script in (
        "leader_killed",
        "coordinator_killed_while_consuming",
        "transaction_coordinator_killed",
    )
    for library in ("java", "librdkafka", "kafka-python")
}
