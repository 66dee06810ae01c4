"""Medians, ratios and targets of the benchmarks."""

from pathlib import Path

import pytest

from tests.bench import chart, growth_chart, kept, spark_page, targets
from tests.bench.figures import BARE, KAFKA, ODRADEK, Results, compared, latencies, ratio_to
from tests.bench.growth import SIZES
from tests.bench.report import HEAD, as_text, lines
from tests.bench.spark_costs import MASTERS
from tests.bench.targets import TARGETS, in_words, is_met
from tests.bench.workloads import GROWTH, OWN, SHARED, TABLE, text_of

MACHINE = {"cores": "2", "load before": "0.1"}
SOME_TARGETS = {
    KAFKA: {"fetch_warm": {"MB_per_s": 1.2, "cpu_s_per_GB": 0.6}},
    BARE: {"fetch_warm": {"cpu_s_per_GB": 1.2}},
}


def test_a_ratio_is_the_median_of_the_ratios_of_each_round() -> None:
    ours = [{"per_s": 10.0}, {"per_s": 20.0}, {"per_s": 90.0}]
    theirs = [{"per_s": 5.0}, {"per_s": 40.0}, {"per_s": 30.0}]
    results = compared({ODRADEK: ours, KAFKA: theirs})
    assert results == {
        ODRADEK: {"per_s": 20.0},
        KAFKA: {"per_s": 30.0},
        ratio_to(KAFKA): {"per_s": 2.0},
    }


def test_only_figures_that_both_have_are_compared() -> None:
    results = compared({ODRADEK: [{"ms": 1.0, "own": 2.0}], KAFKA: [{"ms": 0.0}]})
    assert results[ratio_to(KAFKA)] == {"ms": float("inf")}


def test_latencies_are_the_middle_and_the_tail() -> None:
    assert latencies(range(1000, 0, -1)) == {"p50_us": 501, "p99_us": 991, "p999_us": 1000}


@pytest.mark.parametrize(
    ("figure", "ratio", "met"),
    [("per_s", 1.3, True), ("MB_per_s", 1.1, False), ("p99_us", 1.2, True), ("cpu_us", 1.3, False)],
)
def test_of_rates_more_is_better_and_of_all_others_less(
    figure: str, ratio: float, met: bool
) -> None:
    assert is_met(figure, ratio, 1.2) == met
    assert in_words(figure, 1.2) == ("≥ 1.2" if figure.endswith("per_s") else "≤ 1.2")


def test_the_target_is_shown_beside_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "TARGETS", SOME_TARGETS)
    figures = {"MB_per_s": 12.0, "cpu_s_per_GB": 0.5}
    results = compared({ODRADEK: [figures], KAFKA: [{"MB_per_s": 10.0}], BARE: [figures]})
    assert [line.cells[1:] for line in lines("fetch_warm", results)] == [
        ("MB_per_s", "12", KAFKA, "10", "1.20", "≥ 1.2", "met"),
        ("MB_per_s", "12", BARE, "12", "1.00", "", ""),
        ("cpu_s_per_GB", "0.5", BARE, "0.5", "1.00", "≤ 1.2", "met"),
    ]


def test_a_figure_without_another_broker_is_shown_alone() -> None:
    (line,) = lines("reset", {ODRADEK: {"ms": 1234.5}})
    assert as_text(line.cells).split() == ["reset", "ms", "1,234"]
    assert len(line.cells) == len(HEAD)


def test_targets_and_the_table_name_workloads_that_exist() -> None:
    works = {**SHARED, **OWN}
    assert {*TABLE, *GROWTH} <= works.keys()
    assert {name for those in TARGETS.values() for name in those} <= works.keys()
    assert [name for name, work in works.items() if not text_of(work)] == []


def test_the_last_runs_are_kept_and_their_median_meets_the_target_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(targets, "TARGETS", SOME_TARGETS)

    def run(ours: float) -> Results:
        return compared({ODRADEK: [{"cpu_s_per_GB": ours}], KAFKA: [{"cpu_s_per_GB": 1.0}]})

    (line,) = lines("fetch_warm", run(0.5), run(0.9), run(0.6))
    assert line.cells[2:] == ("0.6", KAFKA, "1", "0.50 · 0.90 · 0.60", "≤ 0.6", "met")
    (line,) = lines("fetch_warm", run(0.5), run(0.9), run(0.7))
    assert line.cells[-1] == "missed"


def test_the_oldest_run_is_forgotten_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "FILE", tmp_path / "figures.json")
    kept.keep_other("growth", {ODRADEK: {"s": 1.23456}}, MACHINE)
    for number in range(kept.RUNS_KEPT + 1):
        kept.begin_run(MACHINE)
        kept.keep("one", {ODRADEK: {"s": float(number)}})
    runs = kept.load().runs
    assert [run.results["one"][ODRADEK]["s"] for run in runs] == [1.0, 2.0, 3.0]
    assert kept.load().newest == {"growth": {ODRADEK: {"s": 1.235}}, "one": {ODRADEK: {"s": 3.0}}}


def test_other_figures_of_another_machine_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "FILE", tmp_path / "figures.json")
    kept.keep_other("one", {ODRADEK: {"s": 1.0}}, MACHINE)
    kept.keep_other("two", {ODRADEK: {"s": 2.0}}, MACHINE | {"load before": "0.3"})
    assert kept.load().others.results.keys() == {"one", "two"}
    kept.keep_other("three", {ODRADEK: {"s": 3.0}}, MACHINE | {"cores": "4"})
    assert kept.load().others.results.keys() == {"three"}


def test_spark_is_shown_beside_its_connector() -> None:
    ends = {"_odradek_krec_s": 1234.0, "_krec_s_x": 1.5, "_krec_cpu_s_x": 2.0}
    figures = {f"{master}_lz4_all{end}": each for master in MASTERS for end, each in ends.items()}
    shown = spark_page.spark_section({"spark_reading": {ODRADEK: figures}}, "2")
    cells = " | ".join(["1,234 · 1.50 · 2.00"] * len(MASTERS))
    assert f"| lz4, all | {cells} |" in shown
    assert spark_page.spark_section({}, "2") == ""


def test_the_pictures_are_drawn_from_results() -> None:
    bars = {
        row.workload: {name: {row.figure: 5.0} for name in (ODRADEK, KAFKA)} for row in chart.ROWS
    }
    assert chart.drawn(chart.ROWS, bars, "4.4.0").count("<rect") == 1 + 2 + 2 * len(chart.ROWS)
    figures = {f"{size}_{figure}": 7.0 for size in SIZES for figure in growth_chart.COLUMNS}
    curves = {name: {ODRADEK: figures, KAFKA: figures} for name in growth_chart.ROWS}
    assert (
        growth_chart.drawn(curves, "4.4.0").count("<polyline") == 2 * len(growth_chart.COLUMNS) * 2
    )
