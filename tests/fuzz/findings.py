"""What fuzzing found: for each kind of failure the smallest input, its bytes and its traceback."""

import hashlib
import resource
import traceback
from pathlib import Path

# Beside what the process has when fuzzing begins. A decoder that believes a length asks for more.
MEMORY_BYTES = 1 << 30
_OWN_SIZE = Path("/proc/self/statm")


class Findings:
    """Failures of one target. Two are of one kind when the same line raised the same class."""

    def __init__(self, target: str, directory: Path) -> None:
        self._target = target
        self._directory = directory
        self._smallest: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._smallest)

    def add(self, data: bytes, error: Exception) -> None:
        """Keep the input, unless a smaller one of its kind is known."""
        kind = _kind(error)
        known = self._smallest.get(kind)
        if known is not None and len(known) <= len(data):
            return
        self._smallest[kind] = data
        name = f"{self._target}-{hashlib.sha256(kind.encode()).hexdigest()[:12]}"
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / name).write_bytes(data)
        story = "".join(traceback.format_exception(error))
        (self._directory / f"{name}.txt").write_text(f"{data.hex()}\n\n{story}")


def _kind(error: Exception) -> str:
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {innermost.filename}:{innermost.lineno}"


def limit_memory(bytes_more: int = MEMORY_BYTES) -> None:
    """Make an allocation out of all proportion a MemoryError, which is then a finding.

    It costs nothing per input, and it sees what C code asks for as well. Only Linux can do it.
    """
    if _OWN_SIZE.exists():
        pages = int(_OWN_SIZE.read_text().split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = pages * resource.getpagesize() + bytes_more
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
