"""The corpus: for each target one text file of inputs, which the tests replay.

    # what a comment is
    0a0b0c                     an input that fuzzing found to reach something new
    infinite-epoch: 7b7d       an input with a name: it was a bug once, and stays for good

`python -m tests.fuzz --keep` writes it anew, as few inputs as reach all that is known to be
reachable (coverage.py); those with a name are not touched.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

DIRECTORY = Path(__file__).parent / "corpus"
_HEAD = "# Inputs of the fuzz target {target}: see tests/fuzz/corpus.py.\n"


class Corpus(NamedTuple):
    """The inputs of one target, in the order of the file."""

    named: dict[str, bytes]
    found: list[bytes]

    def all(self) -> Iterator[bytes]:
        """Every input once."""
        yield from dict.fromkeys([*self.named.values(), *self.found])


def corpus_path(target: str, directory: Path = DIRECTORY) -> Path:
    """Where the inputs of a target are."""
    return directory / f"{target}.txt"


def read_corpus(target: str, directory: Path = DIRECTORY) -> Corpus:
    """The inputs of a target; none where it has no file. Raises ValueError for what is no hex."""
    corpus = Corpus({}, [])
    path = corpus_path(target, directory)
    for line in path.read_text().splitlines() if path.exists() else ():
        if line and not line.startswith("#"):
            name, separator, content = line.rpartition(":")
            if separator:
                corpus.named[name] = bytes.fromhex(content)
            else:
                corpus.found.append(bytes.fromhex(content))
    return corpus


def write_corpus(target: str, corpus: Corpus, directory: Path = DIRECTORY) -> None:
    """Replace the inputs of a target; its comments stay at the top."""
    path = corpus_path(target, directory)
    kept = path.read_text().splitlines(keepends=True) if path.exists() else []
    comments = [line for line in kept if line.startswith("#")] or [_HEAD.format(target=target)]
    lines = [f"{name}: {data.hex()}\n" for name, data in corpus.named.items()]
    lines += [f"{data.hex()}\n" for data in corpus.found]
    path.write_text("".join(comments + lines))


def load_directory(directory: Path) -> list[bytes]:
    """The inputs in a directory of files, as libFuzzer keeps them."""
    return [path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()]


def save_directory(directory: Path, inputs: Iterable[bytes], prefix: str) -> None:
    """Each input as a file; what else lies there stays."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (directory / f"{prefix}-{number:05d}").write_bytes(data)
