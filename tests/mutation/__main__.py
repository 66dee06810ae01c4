"""Mutation: `python -m tests.mutation [--count N] [--seed N] [--under PATH] [--revision NAME]`.

Mutates so many places of a revision, one at a time, and runs the fast tests of their rooms. The
table says which test killed each mutant. `--only 7,19` repeats these lines of the table.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.mutation.copy import Copy
from tests.mutation.places import chosen_places

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> None:
    """Mutate what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="how many places")
    parser.add_argument("--seed", type=int, default=1, help="chooses the places")
    parser.add_argument("--under", default="", help="only files whose path begins like this")
    parser.add_argument("--revision", default="HEAD", help="what of the repository is mutated")
    parser.add_argument("--only", default="", help="numbers of lines of the table")
    parser.add_argument("--whole", action="store_true", help="run all fast tests of the package")
    options = parser.parse_args()
    only = [int(number) for number in options.only.split(",") if number]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutation-", ignore_cleanup_errors=True) as scratch:
        copy = Copy(REPOSITORY, Path(scratch) / "copy", options.revision, whole=options.whole)
        places = chosen_places(copy.root, options.seed, options.count, options.under)
        chosen = [each for each in enumerate(places, 1) if not only or each[0] in only]
        for number, place in chosen:
            started = time.monotonic()
            outcome = copy.test(place)
            survived += outcome.startswith("SURVIVED")
            print(f"{number:3d} {place}\n      {outcome}", end="", flush=True)
            print(f"  ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{len(chosen)} mutants, of which {survived} survived")


if __name__ == "__main__":
    main()
