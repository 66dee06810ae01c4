"""Fuzzing: `python -m tests.fuzz [--target NAME,NAME] [--seconds N] [--corpus DIR] [--keep]`.

Each target is fuzzed for that long, from its seeds and the corpus of the repository: with atheris
where it is installed (`pip install -e '.[fuzz]'`), else with hypothesis. With `--corpus` what is
found stays in a directory, to go on from the next time. With `--keep` the corpus of the repository
is written anew. The end is 1 where something was found; the bytes and tracebacks are in
`--findings`.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz import fallback
from tests.fuzz.corpus import (
    Corpus,
    load_directory,
    read_corpus,
    save_directory,
    write_corpus,
)
from tests.fuzz.coverage import fewest
from tests.fuzz.fallback import Effort
from tests.fuzz.findings import Findings, limit_memory
from tests.fuzz.target import MAX_INPUT_BYTES
from tests.fuzz.targets import TARGETS

# The first input of a large message takes seconds: its reader must be instrumented.
ONE_INPUT_SECONDS = 60
_EXECUTIONS = re.compile(r"stat::number_of_executed_units: (\d+)")
_FEATURES = re.compile(r" ft: (\d+)")
_SHOWN_BYTES = 200

Engine = Callable[[str, Path, Path, float], Effort]


def main() -> int:
    """Fuzz what was asked for; the process's exit code."""
    options = parsed_options()
    engine = ENGINES[options.engine]
    names = options.target.split(",") if options.target else list(TARGETS)
    print(f"{'target':22s}{'executions':>12s}{'seconds':>9s}{'corpus':>8s}{'features':>10s}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        for name in names:
            corpus = (options.corpus or Path(scratch)) / name
            save_directory(corpus, starting_inputs(name), "start")
            effort = engine(name, corpus, options.findings, options.seconds)
            print(
                f"{name:22s}{effort.executions:12d}{effort.seconds:9.1f}"
                f"{len(effort.corpus):8d}{effort.features:10d}",
                flush=True,
            )
            if options.keep:
                keep(name, effort.corpus)
    return report(names, options.findings)


def parsed_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", default="", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--corpus", type=Path, help="a directory that keeps what was found")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--keep", action="store_true", help="write tests/fuzz/corpus anew")
    default = "atheris" if find_spec("atheris") else "hypothesis"
    parser.add_argument("--engine", choices=ENGINES, default=default)
    return parser.parse_args()


def starting_inputs(name: str) -> Iterator[bytes]:
    """Seeds, and the corpus of the repository."""
    yield from TARGETS[name].seeds()
    yield from read_corpus(name).all()


def with_atheris(name: str, corpus: Path, findings: Path, seconds: float) -> Effort:
    """Fuzz in a process of its own, for libFuzzer ends the one that it runs in."""
    findings.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-m", "tests.fuzz.guided", name, str(findings), str(corpus)),
        f"-max_total_time={max(1, round(seconds))}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-timeout={ONE_INPUT_SECONDS}",
        f"-artifact_prefix={findings}/{name}-",
        "-print_final_stats=1",
    ]
    began = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    executions = _EXECUTIONS.findall(done.stderr)
    features = _FEATURES.findall(done.stderr)
    if not executions:
        raise SystemExit(f"atheris failed:\n{done.stderr[-2000:]}")
    return Effort(
        int(executions[-1]),
        time.monotonic() - began,
        load_directory(corpus),
        int(features[-1] if features else 0),
    )


def with_hypothesis(name: str, corpus: Path, findings: Path, seconds: float) -> Effort:
    """Fuzz in this process."""
    limit_memory()
    effort = fallback.fuzz(TARGETS[name], Findings(name, findings), load_directory(corpus), seconds)
    save_directory(corpus, effort.corpus, "found")
    return effort


ENGINES: dict[str, Engine] = {"atheris": with_atheris, "hypothesis": with_hypothesis}


def keep(name: str, inputs: list[bytes]) -> None:
    """Write the corpus of one target anew; inputs with a name stay."""
    named = read_corpus(name).named
    found = fewest(TARGETS[name].one_input, inputs, named.values())
    write_corpus(name, Corpus(named, found))


def report(names: list[str], findings: Path) -> int:
    """Print what was found for these targets, now or before; 1 if anything was."""
    found = [
        path
        for path in sorted(findings.glob("*") if findings.is_dir() else ())
        if path.suffix != ".txt" and path.name.rpartition("-")[0].startswith(tuple(names))
    ]
    for path in found:
        data = path.read_bytes()
        cut = " ..." if len(data) > _SHOWN_BYTES else ""
        print(f"{path}: {len(data)} bytes: {data[:_SHOWN_BYTES].hex()}{cut}")
        story = path.with_name(path.name + ".txt")
        if story.exists():
            print(f"    {story.read_text().rstrip().splitlines()[-1]}")
    print(f"{len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
