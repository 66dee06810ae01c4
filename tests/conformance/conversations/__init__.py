"""What is asked of Apache Kafka and of odradek alike: one function is one conversation."""

from collections.abc import Callable

from tests.conformance.conversation import Conversation
from tests.conformance.conversations import (
    administration,
    cluster,
    configs,
    consumer_group_offsets,
    consumer_groups,
    dead_letters,
    group_administration,
    groups,
    migrations,
    quotas,
    records,
    scram_users,
    share_groups,
    share_records,
    share_state,
    streams_groups,
    telemetry,
    topics,
    transactions,
)

Talk = Callable[[Conversation], None]


def all_conversations() -> dict[str, Talk]:
    """Every public function of the modules here, by its name."""
    return {
        name: function
        for module in (
            administration,
            quotas,
            cluster,
            topics,
            configs,
            records,
            groups,
            group_administration,
            consumer_groups,
            consumer_group_offsets,
            streams_groups,
            migrations,
            share_state,
            share_groups,
            share_records,
            dead_letters,
            transactions,
            scram_users,
            telemetry,
        )
        for name, function in vars(module).items()
        if callable(function)
        and getattr(function, "__module__", "") == module.__name__
        and not name.startswith("_")
    }
