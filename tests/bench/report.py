"""The table of results: a line for each figure of odradek beside each other broker."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.bench.figures import ODRADEK, Results, ratio_to
from tests.bench.targets import in_words, is_met, target_of

HEAD = ("workload", "figure", "odradek", "beside", "", "ratio", "target", "")
WIDTHS = (24, 26, 12, 11, 12, 8, 8, 6)
_TO_THE_RIGHT = {2, 4, 5}


class Line(NamedTuple):
    """One comparison; without another broker `other` is empty."""

    workload: str
    figure: str
    value: float
    other: str = ""
    other_value: float = 0.0
    ratio: float = 0.0

    @property
    def cells(self) -> tuple[str, ...]:
        """What the table shows."""
        shown = (self.workload, self.figure, number(self.value))
        if not self.other:
            return (*shown, "", "", "", "", "")
        shown = (*shown, self.other, number(self.other_value), f"{self.ratio:.2f}")
        target = target_of(self.workload, self.figure, self.other)
        if target is None:
            return (*shown, "", "")
        verdict = "met" if is_met(self.figure, self.ratio, target) else "missed"
        return (*shown, in_words(self.figure, target), verdict)


def lines(workload: str, results: Results) -> Iterator[Line]:
    """The lines of a workload, figure by figure."""
    others = [name for name in results if ratio_to(name) in results]
    for figure, value in results[ODRADEK].items():
        beside = [name for name in others if figure in results[name]]
        if not beside:
            yield Line(workload, figure, value)
        for name in beside:
            ratio = results[ratio_to(name)][figure]
            yield Line(workload, figure, value, name, results[name][figure], ratio)


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
