"""The table of results: a line for each figure of odradek beside each other broker."""

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.bench.figures import ODRADEK, Results, ratio_to
from tests.bench.targets import in_words, is_met, target_of

HEAD = ("workload", "figure", "odradek", "beside", "", "ratio", "target", "")
WIDTHS = (24, 30, 12, 11, 12, 8, 8, 6)
_TO_THE_RIGHT = {2, 4, 5}


class Line(NamedTuple):
    """One comparison, of one run or more; without another broker `other` is empty.

    The values are those of the last run. The target is met if the median of the ratios meets it.
    """

    workload: str
    figure: str
    value: float
    other: str = ""
    other_value: float = 0.0
    ratios: tuple[float, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        """What the table shows."""
        shown: tuple[str, ...] = (self.workload, self.figure, number(self.value))
        if not self.other:
            return (*shown, "", "", "", "", "")
        ratios = " · ".join(f"{ratio:.2f}" for ratio in self.ratios)
        shown = (*shown, self.other, number(self.other_value), ratios)
        target = target_of(self.workload, self.figure, self.other)
        if target is None:
            return (*shown, "", "")
        is_reached = is_met(self.figure, statistics.median(self.ratios), target)
        verdict = "met" if is_reached else "missed"
        return (*shown, in_words(self.figure, target), verdict)


def lines(workload: str, *runs: Results) -> Iterator[Line]:
    """The lines of a workload, figure by figure. `runs`: its results, the last ones last."""
    last = runs[-1]
    others = [name for name in last if ratio_to(name) in last]
    for figure, value in last[ODRADEK].items():
        beside = [name for name in others if figure in last[name]]
        if not beside:
            yield Line(workload, figure, value)
        for name in beside:
            ratios = tuple(run[ratio_to(name)][figure] for run in runs)
            yield Line(workload, figure, value, name, last[name][figure], ratios)


def as_text(cells: Sequence[str]) -> str:
    """One line of the table."""
    padded = [
        cell.rjust(width) if column in _TO_THE_RIGHT else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ]
    return " ".join(padded).rstrip()


def number(value: float) -> str:
    """Three significant digits; whole numbers from 100 on."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
