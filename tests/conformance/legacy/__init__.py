"""What clients of Kafka 0.8 to 0.10 say, and what Apache Kafka 3.9, the last to hear, answered."""

from collections.abc import Callable

from tests.conformance.legacy import looking_up, reading, writing
from tests.conformance.legacy.talk import LegacyTalk

Talk = Callable[[LegacyTalk], None]


def all_conversations() -> dict[str, Talk]:
    """Every public function of the modules here that is one conversation, by its name."""
    return {
        name: function
        for module in (writing, reading, looking_up)
        for name, function in vars(module).items()
        if callable(function)
        and getattr(function, "__module__", "") == module.__name__
        and not name.startswith("_")
    }
