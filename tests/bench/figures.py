"""What a workload has measured: figures by broker, and the ratios of odradek's to the others'.

A figure's name ends with its unit. Of a figure that ends with `_per_s` more is better, of all
others less.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

Figures = dict[str, float]
Results = dict[str, Figures]  # by broker, and by "odradek/" and another broker: the ratios

ODRADEK, KAFKA, BARE = "odradek", "kafka", "bare"


def ratio_to(other: str) -> str:
    """The name under which results have the ratios of odradek to another broker."""
    return f"{ODRADEK}/{other}"


def medians(rounds: Sequence[Figures]) -> Figures:
    """Of each figure, the median of all rounds."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def compared(rounds: Mapping[str, Sequence[Figures]]) -> Results:
    """The medians of each broker's rounds, and of odradek's ratios to the others.

    A ratio is that of two measurements of one round, so that what else the machine does counts
    less.
    """
    results = {name: medians(measured) for name, measured in rounds.items()}
    for other in [name for name in rounds if name != ODRADEK]:
        pairs = zip(rounds[ODRADEK], rounds[other], strict=True)
        results[ratio_to(other)] = medians([_ratios(ours, theirs) for ours, theirs in pairs])
    return results


def _ratios(ours: Figures, theirs: Figures) -> Figures:
    shared = ours.keys() & theirs.keys()
    return {name: ours[name] / theirs[name] if theirs[name] else math.inf for name in shared}


def at(sorted_values: Sequence[float], share: float) -> float:
    """The value that so large a share does not exceed."""
    return sorted_values[min(int(len(sorted_values) * share), len(sorted_values) - 1)]


def latencies(trips_us: Sequence[float]) -> Figures:
    """The middle and the tail of round trips."""
    trips = sorted(trips_us)
    return {"p50_us": at(trips, 0.5), "p99_us": at(trips, 0.99), "p999_us": at(trips, 0.999)}
