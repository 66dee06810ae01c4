"""The fuzzer proper: libFuzzer, guided by the coverage that atheris sees. Runs in its own process.

    python -m tests.fuzz.guided TARGET FINDINGS CORPUS [-max_total_time=60 ...]

atheris rewrites the bytecode of odradek's modules as they are imported. The readers that
the message compiler makes are no modules: they are compiled and executed from source, where no
import hook sees them. So each is rewritten when it has been made, by `atheris.instrument_func`.
Coverage, and the values that are compared, then come from inside every decoder; libFuzzer accepts
that counters are added while it runs. What runs once per message (declarations, the compiler) is
left as it is, or the first input of each message would look like a discovery.

A finding does not end the run: it is noted, and libFuzzer never hears of it. Only what takes too
long or kills the process does.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

from tests.fuzz.findings import Findings, limit_memory
from tests.fuzz.target import UNGUIDED


def main() -> None:
    """Never returns: libFuzzer ends the process."""
    name, findings_directory, *arguments = sys.argv[1:]
    with atheris.instrument_imports(
        include=["odradek"],
        exclude=[f"odradek.protocol.{module}" for module in UNGUIDED],
    ):
        from odradek.protocol.source import Source
        from tests.fuzz.targets import TARGETS
    Source.compiled = _instrumenting(Source.compiled)
    limit_memory()
    findings = Findings(name, Path(findings_directory))
    target = TARGETS[name]

    def one_input(data: bytes) -> None:
        try:
            target.one_input(data)
        except Exception as error:  # noqa: BLE001 # whatever it is, it is a finding
            findings.add(data, error)

    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


def _instrumenting(compiled: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def instrumented(self: Any, function: str) -> Any:
        made = compiled(self, function)
        # Rewriting takes twenty milliseconds; writers are given what readers have checked.
        return atheris.instrument_func(made) if function == "read" else made

    return instrumented


if __name__ == "__main__":
    main()
