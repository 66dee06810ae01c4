"""Batches of share-partitions, combined by Apache Kafka: KafkaCombiner.java."""

import json
import random
from collections.abc import Sequence

from odradek.coordinator.share_state.batches import NO_OFFSET, DeliveryBatch
from tests.support.java_program import java_answers
from tests.support.lengths import SEED

# Stored batches, new batches, start offset: the arguments of `combined`.
Case = tuple[list[DeliveryBatch], list[DeliveryBatch], int]


class KafkaCombiner:
    """PersisterStateBatchCombiner, asked many questions at once."""

    @staticmethod
    def random_cases(count: int) -> list[Case]:
        """The same ones for each seed."""
        chance = random.Random(SEED)
        return [
            (
                [_random_batch(chance) for _ in range(chance.randrange(6))],
                [_random_batch(chance) for _ in range(chance.randrange(6))],
                chance.choice([NO_OFFSET, NO_OFFSET, chance.randrange(20)]),
            )
            for _ in range(count)
        ]

    @staticmethod
    def answers(cases: Sequence[Case]) -> list[tuple[DeliveryBatch, ...]]:
        """What Kafka makes of each case. Skips the test without Java."""
        lines = java_answers("KafkaCombiner.java", [json.dumps(case) for case in cases])
        return [tuple(DeliveryBatch(*batch) for batch in json.loads(line)) for line in lines]


def _random_batch(chance: random.Random) -> DeliveryBatch:
    first = chance.randrange(14)
    last = first + chance.randrange(7)
    return DeliveryBatch(first, last, chance.randint(1, 3), chance.choice([0, 2, 3, 4]))
