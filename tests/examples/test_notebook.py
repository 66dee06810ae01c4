"""The notebook from a topic to a plot, run from its first cell to its last."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook" / "orders.ipynb"
LIMIT_SECONDS = 120


def outputs_of(notebook: Any) -> list[Mapping[str, str]]:
    """What the cells have shown, by MIME type; the text that they have printed is text/plain."""
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    return [each.get("data") or {"text/plain": each["text"]} for each in outputs]


@pytest.mark.slow
def test_the_notebook_runs_from_a_topic_to_a_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=LIMIT_SECONDS, resources=where).execute()
    summary, first_rows, statistics, plot = outputs_of(notebook)
    assert "records=5000" in summary["text/plain"]
    assert "Lima" in first_rows["text/plain"]
    assert "out of order" in statistics["text/plain"]
    assert "5000" in statistics["text/plain"]
    assert "2023-11-15" in statistics["text/plain"]
    assert all(city in plot["image/svg+xml"] for city in ("Lima", "Oslo", "Rome"))


def test_the_notebook_is_kept_without_output() -> None:
    """So a change of it shows what has changed."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert outputs_of(notebook) == []
    assert {cell.get("execution_count") for cell in notebook.cells} == {None}
