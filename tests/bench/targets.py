"""What odradek is to reach: the ratio of each figure to Apache Kafka's, or to another's.

Of a figure that ends with `_per_s` a target is the least ratio, of all others the largest.
"""

from collections.abc import Mapping

from tests.bench.figures import BARE, KAFKA

Targets = Mapping[str, float]  # by figure

_LIBRDKAFKA = {"per_s": 1.0, "cpu_us_each": 0.38}
_TAIL = {"per_s": 1.2, "cpu_us_each": 0.6, "p99_us": 0.6}
_MANY = {"per_s": 1.0, "cpu_us_each": 0.75, "p99_us": 1.0}
_SHARED = {"MB_per_s": 1.0, "cpu_s_per_GB": 0.7}
TARGETS: Mapping[str, Mapping[str, Targets]] = {
    KAFKA: {
        "producer_perf": {"MB_per_s": 1.4, "cpu_s_per_GB": 0.38, "p99_ms": 0.6},
        "java_defaults": {"MB_per_s": 1.2, "cpu_s_per_GB": 0.45, "p99_ms": 0.8},
        "librdkafka_1_none": _LIBRDKAFKA,
        "librdkafka_1_lz4": _LIBRDKAFKA,
        "librdkafka_6_none": _LIBRDKAFKA,
        "librdkafka_6_lz4": _LIBRDKAFKA,
        "one_at_a_time": {
            "per_s": 1.3,
            "cpu_us_each": 0.4,
            "p50_us": 0.7,
            "p99_us": 0.5,
            "p999_us": 0.3,
        },
        "produce_200": _MANY,
        "consumer_perf": {"MB_per_s": 1.2, "cpu_s_per_GB": 0.35},
        "share_consumer_perf": _SHARED,
        "share_consumers_of_10": _SHARED,
        "fetch_warm": {"MB_per_s": 1.3, "cpu_s_per_GB": 0.5},
        "tail": _TAIL,
        "tail_of_100": {**_TAIL, "p50_us": 1.0},
        "produce_2000_partitions": {"per_s": 1.0, "cpu_us_each": 0.7},
        "produce_beside_idle": _MANY,
        "beside_writers": {"p999_us": 0.4},
        "start_empty": {"ready_s": 0.12, "memory_MB": 0.1},
        "start_2000_partitions": {
            "clean_ready_s": 0.3,
            "clean_memory_MB": 0.2,
            "killed_ready_s": 0.05,
        },
        "memory_after_load": {"memory_MB": 0.05},
    },
    BARE: {
        "one_at_a_time": {"cpu_us_each": 1.35},
        "produce_large_batches": {"cpu_s_per_GB": 1.5},
        "fetch_warm": {"cpu_s_per_GB": 1.2},
    },
}


def target_of(workload: str, figure: str, other: str) -> float | None:
    """The target for a ratio to another broker, if there is one."""
    return TARGETS.get(other, {}).get(workload, {}).get(figure)


def more_is_better(figure: str) -> bool:
    """Whether it is a rate: of all other figures less is better."""
    return figure.endswith("per_s")


def is_met(figure: str, ratio: float, target: float) -> bool:
    """Whether a ratio is as good as its target."""
    return ratio >= target if more_is_better(figure) else ratio <= target


def in_words(figure: str, target: float) -> str:
    """The target as it is shown: `≥ 1.4`."""
    return f"{'≥' if more_is_better(figure) else '≤'} {target:g}"
