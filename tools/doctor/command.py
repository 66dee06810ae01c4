"""Runs the checks, and prints what they find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import typer

from odradek.tools.client.client_config import DEFAULT_BOOTSTRAP, client_settings
from odradek.tools.tables import print_json

from .client_checks import check_as_client
from .findings import Finding, Health
from .machine_checks import check_machine, client_address

COLORS = {Health.OK: "green", Health.WARNING: "yellow", Health.PROBLEM: "red"}


def run(
    server_file: Path | None, bootstrap: str | None, file: Path | None, *, as_json: bool
) -> int:
    """Check a broker as a client, and its machine if `server_file` is given.

    Returns 1 if there is a problem, else 0. Raises CommandError.
    """
    own = None if server_file is None else client_address(server_file)
    settings = client_settings(bootstrap, file, default=own or DEFAULT_BOOTSTRAP)
    findings: Iterable[Finding] = check_as_client(settings)
    if server_file is not None:
        findings = chain(check_machine(server_file), findings)
    found = []
    for finding in findings:
        found.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        print_json([asdict(finding) for finding in found])
    return int(any(finding.health is Health.PROBLEM for finding in found))


def _print(finding: Finding) -> None:
    label = typer.style(f"{finding.health:8}", fg=COLORS[finding.health])
    typer.echo(f"{label} {finding.text}")
    if finding.advice:
        typer.echo(f"{'':8} → {finding.advice}")
