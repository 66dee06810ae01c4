"""Finds or starts the broker, has it measured, and prints the figures."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.tools.client.failure import CommandError
from odradek.tools.tables import print_json, show_table

from .measuring import Figures, measure

# Measured by this command, on an idle virtual machine with two cores.
REFERENCE = Figures(
    produce_mb_per_s=600.0,
    consume_mb_per_s=950.0,
    latency_p50_ms=0.1,
    latency_p99_ms=0.18,
)
LABELS = ("produce, MB/s", "consume, MB/s", "latency p50, ms", "latency p99, ms")


def run(
    seconds: float,
    directory: Path | None,
    bootstrap: str | None,
    file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Measure the broker that is named, or one that is started. Raises CommandError."""
    if bootstrap is None and file is None:
        with _own_broker(directory) as address:
            figures = measure(address, None, seconds)
    elif directory is not None:
        raise CommandError("--directory is for the broker that is started without --bootstrap")
    else:
        figures = measure(bootstrap, file, seconds)
    if as_json:
        print_json({"measured": figures._asdict(), "reference": REFERENCE._asdict()})
        return
    rows = [
        (label, _rounded(here), _rounded(there))
        for label, here, there in zip(LABELS, figures, REFERENCE, strict=True)
    ]
    show_table("records of 1 KiB, one partition", ("", "measured", "reference"), rows)


def _rounded(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.2f}"


@contextmanager
def _own_broker(directory: Path | None) -> Iterator[str]:
    """The address of a broker of its own, with defaults, on an empty directory."""
    with (
        tempfile.TemporaryDirectory(prefix="odradek-bench-", dir=directory) as data,
        tempfile.TemporaryFile("w+") as log,
    ):
        command = [sys.executable, "-c", "from odradek.tools.cli import main; main()", "serve"]
        command += ["--port", "0", "--print-address", "--override", f"log.dirs={data}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process:
            assert process.stdout is not None
            try:
                line = process.stdout.readline()
                if not line:
                    log.seek(0)
                    raise CommandError(f"the broker did not start: {log.read().strip()}")
                yield json.loads(line)["bootstrap_servers"]
            finally:
                process.terminate()
